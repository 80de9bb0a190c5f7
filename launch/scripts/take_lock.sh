# Sourced by scripts that have a say() and the run() of stoppable.sh.
#
# take_lock FD MESSAGE [--shared]: takes the lock on an open file, and says MESSAGE where it has to wait. Where the file system has no locks
# it goes on without one.
take_lock() {
  local code=0
  flock ${3-} -n -E 75 "$1" 2>/dev/null || code=$?
  [ $code -eq 75 ] || return 0
  say "$2"
  run flock ${3-} "$1"
}
