// The parts of fmt that are not templates, of the version whose headers LibTorch brings: as
// src/format.cc of fmt.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE

template auto locale_ref::get<std::locale>() const -> std::locale;

namespace detail {

template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto thousands_sep_impl<wchar_t>(locale_ref) -> thousands_sep_result<wchar_t>;
template auto decimal_point_impl(locale_ref) -> char;
template auto decimal_point_impl(locale_ref) -> wchar_t;

}  // namespace detail
FMT_END_NAMESPACE
