# sidestream_header_version(<variable> <header> <prefix>): "2.28.9" out of the lines "#define <prefix>MAJOR 2" and the two after
# it (MINOR, PATCH, PATCHLEVEL or RELEASE); "" where there are none.
function(sidestream_header_version variable header prefix)
  file(STRINGS "${header}" lines REGEX "define ${prefix}(MAJOR|MINOR|PATCH|PATCHLEVEL|RELEASE)(_VERSION)? ")
  string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
  string(JOIN "." version ${numbers})
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()
