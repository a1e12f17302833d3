// std::function, std::shared_ptr and std::unique_ptr. All of <functional> and <memory> costs every
// file that includes Ingot a seventh of its compile time (searchers, ranges, parallel algorithms),
// so with GNU's library only these three are included.
#pragma once
#include <iosfwd>  // defines __GLIBCXX__, where it is GNU's

#ifdef __GLIBCXX__
#include <bits/shared_ptr.h>
#include <bits/std_function.h>
#include <bits/unique_ptr.h>
#else
#include <functional>
#include <memory>
#endif
