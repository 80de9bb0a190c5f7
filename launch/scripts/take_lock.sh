# Sourced by scripts that have a say().
#
# take_lock FD MESSAGE: takes the lock on an open file, and says MESSAGE where it has to wait. Where the file system has no locks it goes
# on without one.
take_lock() {
  local code=0
  flock -n -E 75 "$1" 2>/dev/null || code=$?
  [ $code -eq 75 ] || return 0
  say "$2"
  flock "$1"
}
