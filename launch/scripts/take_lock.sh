# Sourced by scripts that have a say().
#
# take_lock FD MESSAGE: takes the lock on an open file; says MESSAGE where it has to wait. Goes on without one where the file system has none.
take_lock() {
  local code=0
  flock -n -E 75 "$1" 2>/dev/null || code=$?
  [ $code -eq 75 ] || return 0
  say "$2"
  flock "$1"
}
