# Sourced by scripts that have a say(). They are asked to stop by Ctrl-C, SIGTERM or a terminal that closes: between commands they end, and
# what takes long is started by
#
# run COMMAND ...: its exit code. A shell that waits for a command in front does not hear SIGTERM before that ends, or dies of it and leaves
# the command running. What this script alone is asked is handed on to the command, which knows what to do; the script ends when that has.
# Before it, as in `to_all=1 run cmake`:
#   to_all=1     of a command that does not hand it on itself: to all that it has started, too, and the script ends when all of that has
#   by=INT       by this signal instead
running='' stopped=0 as_in_front=(env) hears_ctrl_c=0
if env --default-signal=INT true 2>/dev/null; then  # shells have their background ignore it
  as_in_front=(env --default-signal=INT,QUIT) hears_ctrl_c=1
fi
ask_to_stop() {
  stopped=$1
  case $running in
    '') exit "$1" ;;
    starting) ;;
    *) hand_on ;;
  esac
}
trap 'ask_to_stop 130' INT
trap 'ask_to_stop 143' TERM
trap 'ask_to_stop 129' HUP
hand_on() {
  local signal=TERM
  case $stopped in
    129) signal=HUP ;;  # a terminal that closes says so twice, which is one request as long as it is this signal
    130) [ $hears_ctrl_c = 0 ] || signal=INT ;;
  esac
  [ $signal = INT ] || kill -"${by:-$signal}" "$running" 2>/dev/null || :  # Ctrl-C reaches both
  [ -z "${to_all-}" ] || end_family "${by:-$signal}"
}
# All that a command has started, whoever its parent is by now: it has the mark in its environment. Each is told once.
end_family() {  # SIGNAL
  local pid pids told=' '
  while pids=$(grep -lzsxF "$mark" /proc/[0-9]*/environ | cut -d / -f 3) || :; [ -n "$pids" ]; do
    for pid in $pids; do
      [[ $told != *" $pid "* ]] || continue
      told+="$pid "
      kill -"$1" "$pid" 2>/dev/null || :
    done
    sleep 0.1
  done
}
run() {
  local code=0 mark="STARTED_BY_SCRIPT=$$.$RANDOM"
  running=starting
  "${as_in_front[@]}" "$mark" "$@" <&0 &
  running=$!
  [ $stopped = 0 ] || hand_on
  wait "$running" || code=$?
  while kill -0 "$running" 2>/dev/null; do  # a signal ends a wait
    code=0
    wait "$running" || code=$?
  done
  running=''
  [ $stopped = 0 ] || { say "stopped"; exit "$(( code == 0 ? stopped : code ))"; }
  return $code
}
