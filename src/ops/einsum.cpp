// einsum: each operand's dims get labels (a letter, or a position within "..."); then the operands
// are joined from left to right, each pair by one product of matrices, or elementwise where nothing
// is summed.
#include <algorithm>
#include <array>
#include <cctype>

#include "ingot/linalg.h"
#include "ingot/movement.h"
#include "ops/common.h"

namespace ingot {
namespace {

constexpr int kLetters = 52;  // A-Z, a-z; then the dims of "...", counted from the last
constexpr int kLabels = kLetters + kMaxDims;
using Labels = std::vector<int>;

struct Term {
  Tensor t;
  Labels labels;
};

bool has(const Labels& l, int label) { return std::find(l.begin(), l.end(), label) != l.end(); }

struct Einsum {
  std::string_view equation;
  SourceLoc loc;
  std::vector<Term> terms;
  Labels out;
  std::array<int64_t, kLabels> size{};  // 0: not seen

  [[noreturn]] void wrong(const std::string& what) const {
    fail(ErrorKind::Value, "einsum", "\"" + std::string(equation) + "\": " + what, loc,
         "write it as \"ij,jk->ik\"");
  }

  // Letters of one operand or of the result; dots: how many dims "..." stands for there.
  Labels parse(std::string_view text, int dots) const {
    Labels l;
    bool seen = false;
    for (size_t i = 0; i < text.size(); ++i) {
      char ch = text[i];
      if (ch >= 'A' && ch <= 'Z')
        l.push_back(ch - 'A');
      else if (ch >= 'a' && ch <= 'z')
        l.push_back(26 + ch - 'a');
      else if (ch == '.' && text.substr(i, 3) == "..." && !seen) {
        for (int k = dots - 1; k >= 0; --k) l.push_back(kLetters + k);
        seen = true;
        i += 2;
      } else {
        wrong(std::string("'") + ch + "' is not the label of a dim");
      }
    }
    return l;
  }

  void read(const std::vector<Tensor>& operands) {
    std::string text;
    for (char ch : equation)
      if (!std::isspace(static_cast<unsigned char>(ch))) text += ch;
    size_t arrow = text.find("->");
    std::string left = text.substr(0, arrow);
    int dots = 0;
    size_t at = 0;
    for (const Tensor& x : operands) {
      NodeRef n = node_of(x, "einsum", loc);
      size_t end = std::min(left.find(',', at), left.size());
      if (at > left.size()) wrong("has fewer parts than there are operands");
      std::string part = left.substr(at, end - at);
      size_t letters = static_cast<size_t>(
          std::count_if(part.begin(), part.end(), [](char ch) { return ch != '.'; }));
      bool ellipsis = part.find('.') != std::string::npos;
      int m = ellipsis ? n->rank() - static_cast<int>(letters) : 0;
      Labels l = m < 0 ? Labels{} : parse(part, m);
      if (m < 0 || static_cast<int>(l.size()) != n->rank())
        wrong("\"" + part + "\" does not name the dims of " + describe(x));
      dots = std::max(dots, m);
      terms.push_back({x, l});
      at = end + 1;
    }
    if (at <= left.size()) wrong("has more parts than there are operands");
    if (arrow != std::string::npos)
      out = parse(std::string_view(text).substr(arrow + 2), dots);
    else
      implicit(dots);
    for (size_t i = 0; i < out.size(); ++i) {
      if (std::count(out.begin(), out.end(), out[i]) > 1)
        wrong("a letter occurs twice in the result");
      bool known = out[i] >= kLetters;
      for (const Term& t : terms) known = known || has(t.labels, out[i]);
      if (!known) wrong("a letter of the result is in no operand");
    }
  }

  // The dims of "...", then the letters that occur once.
  void implicit(int dots) {
    for (int k = dots - 1; k >= 0; --k) out.push_back(kLetters + k);
    for (int l = 0; l < kLetters; ++l) {
      int64_t count = 0;
      for (const Term& t : terms) count += std::count(t.labels.begin(), t.labels.end(), l);
      if (count == 1) out.push_back(l);
    }
  }

  void check_sizes() {
    for (const Term& t : terms)
      for (size_t i = 0; i < t.labels.size(); ++i) {
        int64_t s = t.t.shape()[static_cast<int>(i)];
        int64_t& known = size[static_cast<size_t>(t.labels[i])];
        if (known == 0 || known == 1)
          known = s;
        else if (s != known && s != 1)
          fail(ErrorKind::Shape, "einsum",
               "\"" + std::string(equation) + "\": a letter stands for " + std::to_string(known) +
                   " and for " + std::to_string(s) + " in " + describe(t.t),
               loc, "sizes of one letter must be equal or 1");
      }
  }

  // A letter that occurs twice in one operand: its diagonal.
  void take_diagonals(Term& t) const {
    for (size_t i = 0; i < t.labels.size(); ++i)
      for (size_t j = i + 1; j < t.labels.size(); ++j) {
        if (t.labels[i] != t.labels[j]) continue;
        int label = t.labels[i];
        if (t.t.shape()[static_cast<int>(i)] != t.t.shape()[static_cast<int>(j)])
          fail(ErrorKind::Shape, "einsum",
               "\"" + std::string(equation) + "\": a letter stands for two sizes in " +
                   describe(t.t),
               loc);
        t.t = diagonal(t.t, 0, static_cast<int64_t>(i), static_cast<int64_t>(j), loc);
        t.labels.erase(t.labels.begin() + static_cast<int64_t>(j));
        t.labels.erase(t.labels.begin() + static_cast<int64_t>(i));
        t.labels.push_back(label);
        return take_diagonals(t);
      }
  }

  void drop(Term& t, const Labels& keep, const Labels& others) const {
    Dims axes;
    Labels left;
    for (size_t i = 0; i < t.labels.size(); ++i) {
      if (has(keep, t.labels[i]) || has(others, t.labels[i]))
        left.push_back(t.labels[i]);
      else
        axes.push_back(static_cast<int64_t>(i));
    }
    if (!axes.empty()) t.t = sum(t.t, Axes(axes), false, loc);
    t.labels = left;
  }

  // Dims of size 1 that are wider in the other operand.
  static void squeeze_narrow(Term& t, const Term& other, const SourceLoc& loc) {
    for (size_t i = t.labels.size(); i-- > 0;) {
      auto at = std::find(other.labels.begin(), other.labels.end(), t.labels[i]);
      if (at == other.labels.end() || t.t.shape()[static_cast<int>(i)] != 1) continue;
      if (other.t.shape()[static_cast<int>(at - other.labels.begin())] == 1) continue;
      t.t = squeeze(t.t, static_cast<int64_t>(i), loc);
      t.labels.erase(t.labels.begin() + static_cast<int64_t>(i));
    }
  }

  Tensor ordered(const Term& t, const Labels& order) const {
    Dims dims;
    for (int l : order)
      dims.push_back(std::find(t.labels.begin(), t.labels.end(), l) - t.labels.begin());
    return permute(t.t, dims, loc);
  }

  Term join(Term a, Term b, const Labels& keep) const {
    squeeze_narrow(a, b, loc);
    squeeze_narrow(b, a, loc);
    drop(a, keep, b.labels);
    drop(b, keep, a.labels);
    Labels batch, summed, only_a, only_b;
    for (int l : a.labels)
      (!has(b.labels, l) ? only_a : has(keep, l) ? batch : summed).push_back(l);
    for (int l : b.labels)
      if (!has(a.labels, l)) only_b.push_back(l);
    auto join_of = [](std::initializer_list<const Labels*> parts) {
      Labels r;
      for (const Labels* p : parts) r.insert(r.end(), p->begin(), p->end());
      return r;
    };
    Tensor x = ordered(a, join_of({&batch, &only_a, &summed})),
           y = ordered(b, join_of({&batch, &summed, &only_b}));
    int nb = static_cast<int>(batch.size()), na = static_cast<int>(only_a.size()),
        ns = static_cast<int>(summed.size());
    const Dims all = x.shape();
    Dims shared(all.begin(), nb), result = shared, sx = shared, sy = shared;
    int64_t m = 1, k = 1, n = 1;
    for (int i = 0; i < na; ++i) m *= x.shape()[nb + i], result.push_back(x.shape()[nb + i]);
    for (int i = 0; i < ns; ++i) k *= x.shape()[nb + na + i];
    for (size_t i = 0; i < only_b.size(); ++i)
      n *= y.shape()[nb + ns + static_cast<int>(i)],
          result.push_back(y.shape()[nb + ns + static_cast<int>(i)]);
    for (int64_t s : {m, summed.empty() ? int64_t{1} : k}) sx.push_back(s);
    for (int64_t s : {summed.empty() ? int64_t{1} : k, n}) sy.push_back(s);
    Tensor p = reshape(x, sx, loc), q = reshape(y, sy, loc);
    Tensor r = summed.empty() ? mul(p, q, loc) : matmul(p, q, loc);
    return {reshape(r, result, loc), join_of({&batch, &only_a, &only_b})};
  }

  Tensor run() {
    for (Term& t : terms) take_diagonals(t);
    check_sizes();
    Term acc = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) {
      Labels keep = out;
      for (size_t j = i + 1; j < terms.size(); ++j)
        keep.insert(keep.end(), terms[j].labels.begin(), terms[j].labels.end());
      acc = join(acc, terms[i], keep);
    }
    drop(acc, out, {});
    Labels order;
    for (int l : out)
      if (has(acc.labels, l)) order.push_back(l);
    return ordered(acc, order);
  }
};

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  if (operands.empty())
    fail(ErrorKind::Value, "einsum", "was given no tensors", loc, "give at least one");
  Einsum e{equation, loc, {}, {}, {}};
  e.read(operands);
  return e.run();
}

}  // namespace ingot
