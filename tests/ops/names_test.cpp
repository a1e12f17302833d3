// Names: a program that says `using namespace std; using namespace ingot;` compiles, whatever std
// calls the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <vector>

#include <ingot/ingot.h>

using namespace std;
using namespace ingot;

TEST_CASE("both namespaces at once") {
  Tensor x = zeros({2, 3}), y = ones({3}, int64), z;
  z = x + y, z = x + 1, z = 2.0f - x, z = -x, z = !x, z = ~y;
  z = x == y, z = x == 2, z = 2 == x, z = x != y, z = x < 3.0, z = 3 < x, z = x[0] == x[1];
  z = exp(x), z = log(x), z = sin(x), z = tanh(x), z = sqrt(x), z = erf(x), z = abs(x),
  z = round(x), z = floor(x), z = trunc(x);
  z = pow(x, 2), z = pow(x, y), z = pow(2.0, x), z = fmod(x, 2), z = remainder(x, 2),
  z = atan2(x, y), z = isnan(x), z = isinf(x);
  z = max(x, y), z = max(x), z = min(x, y), z = min(x), z = clamp(x, 0, 1), z = clamp(x, y, y),
  z = where(x > 0, x, 0.0);
  auto [values, places] = max(x, 1);
  vector<int> places_of{1, 2};
  z = sum(x), z = sum(x, 1), z = sum(x, {0, 1}, true), z = all(x), z = x.any(), z = x.std(),
  z = ingot::std(x, 0), z = var(x);
  z = rand({2, 3}), z = full({2}, 1), z = arange(5), z = tensor({{1, 2}, {3, 4}}),
  z = linspace(0, 1, 3), z = ingot::empty({2, 3});
  z = cat({x, x}), z = stack({x, x}), z = split(x, 1)[0], z = t(x), z = flip(x, 0),
  z = gather(x, 0, zeros({2, 3}, int64));
  z = x.logical_and(x), z = x % 2, z = y & y, z = y | 1, z = select(x, 0, 0), z = roll(x, 1, 0),
  z = dropout(x, 0.1);
  z = lerp(x, x, 0.5), z = hypot(x, x), z = lgamma(x), z = copysign(x, 1), z = fmin(x, 0),
  z = fmax(x, x), z = signbit(x), z = ldexp(x, 2);
  z = tile(x, {2}), z = roll(x, 1, 0), z = movedim(x, 0, 1), z = trace(x), z = outer(y, y),
  z = inner(x, x), z = cross(x, x), z = normal(0, 1, {2});
  bool same = equal(x, x);
  CHECK(same);
  sort(begin(places_of), end(places_of), greater<int>());
  swap(x, z);
  swap(x, z);
  vector<Tensor> list{x, z};
  reverse(list.begin(), list.end());
  list.erase(list.begin());
  CHECK(list.size() == 1);
  // Numbers still mean std's.
  CHECK(max(3, 4) == 4);
  CHECK(pow(2.0, 3.0) == 8);
  CHECK(abs(-1) == 1);
  CHECK(exp(0.0) == 1);
  CHECK(x.shape() == Dims{2, 3});
}
