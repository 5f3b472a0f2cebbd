/**
 * The shell scripts of a box, written into its folder. They are POSIX sh, hold no value of any box, and pass shellcheck. A
 * shell and not Node, because each box has one for as long as it lives: under 1 MB instead of 40.
 */
import { lookUpCommand } from '../../lib/shell-lookup.ts'

/**
 * First process of a box, and its dead-man clock. `$1` is `namespace` or `session`.
 *
 * In a namespace it is pid 1: nothing inside can kill it, and when it goes, the kernel kills all the rest. `/proc` is the
 * host's, so `/proc/self/stat`, opened by the shell itself, holds its pid as the host counts it. It claims the box before it
 * does anything else: whoever removes a box takes the claim first, so that a late start finds it taken.
 */
export const initScript = `#!/bin/sh
mode=$1
folder=\${0%/*}
cd "$folder" || exit 1
# A trapped signal ends a wait and nothing else: HUP says that the deadline moved.
trap : TERM HUP INT QUIT USR1 USR2 ALRM
set -C
: > claim
set +C
exec 2> /dev/null

# Fields of /proc/P/stat from the third on, into the variables state, session and start. The name before them can hold anything.
parse() {
  # shellcheck disable=SC2086
  set -- \${1##*") "}
  state=$1
  session=$4
  start=\${20}
}

read -r line < /proc/self/stat
pid=\${line%% *}
parse "$line"
read -r boot < /proc/sys/kernel/random/boot_id
inode=session
if [ "$mode" = namespace ]; then
  inode=$(readlink /proc/self/ns/pid)
  inode=\${inode#'pid:['}
  inode=\${inode%']'}
fi
deadline=0
# Sets left to the hundredths of a second until the deadline. One that can't be read leaves the last one standing.
remaining() {
  read -r written < "$folder/deadline" && case $written in
    '' | *[!0-9]*) ;;
    *) deadline=$written ;;
  esac
  read -r uptime _ < /proc/uptime
  left=$((deadline - \${uptime%.*}\${uptime#*.}))
  [ "$left" -gt 0 ]
}

# The clock knows its deadline before anybody knows of the box.
remaining
# Who can't report must not run: nobody would ever know of it. In a namespace its end is the end of all.
printf '%s %s %s %s\\n' "$boot" "$inode" "$pid" "$start" > init.new || exit 1
mv init.new init || exit 1
cd /

while remaining; do
  # At most a minute: the deadline is on a clock that goes on while the machine is suspended, and a sleep does not.
  if [ "$left" -ge 6000 ]; then
    sleep 60 &
  elif [ "$left" -ge 100 ]; then
    sleep $((left / 100)) &
  elif [ "$left" -ge 10 ]; then
    sleep "0.$left" &
  else
    sleep "0.0$left" &
  fi
  sleeper=$!
  wait "$sleeper"
  case $? in
    0) ;;
    # A sleep that knows no fractions fails; then a second it is.
    [1-9] | [1-9][0-9] | 1[01]? | 12[0-7]) sleep 1 ;;
    *) kill "$sleeper" ;;
  esac
done

# Succeeds for two seconds from the first call after grace was emptied.
within_grace() {
  read -r uptime _ < /proc/uptime
  now=\${uptime%.*}\${uptime#*.}
  : "\${grace:=$((now + 200))}"
  [ "$now" -lt "$grace" ]
}

grace=
if [ "$mode" = namespace ]; then
  kill -TERM -1
  while within_grace && kill -0 -1; do
    sleep 0.1 || sleep 1
  done
  exit 0
fi

# Succeeds while the process $1 carries this box's tags.
carries() {
  tr '\\000' '\\n' < "/proc/$1/environ" | grep -qxF "LEASEHOLD_ATTEMPT=$LEASEHOLD_ATTEMPT" || return 1
  tr '\\000' '\\n' < "/proc/$1/environ" | grep -qxF "LEASEHOLD_REF=$LEASEHOLD_REF"
}

# Sends $1 to the members of the recorded sessions; fails when there are none.
signal_sessions() {
  found=1
  for record in "$folder"/sessions/*; do
    read -r sid sid_start sid_boot < "$record" || continue
    [ "$sid_boot" = "$boot" ] || continue
    leader=gone
    if read -r line < "/proc/$sid/stat"; then
      parse "$line"
      leader=$start
    fi
    [ "$leader" = gone ] || [ "$leader" = "$sid_start" ] || continue
    # A record names a process and proves nothing: one without the tags leads no session of this box.
    [ "$leader" = gone ] || carries "$sid" || leader=gone
    for stat in /proc/[0-9]*/stat; do
      read -r line < "$stat" || continue
      parse "$line"
      [ "$session" = "$sid" ] || continue
      [ "$state" != Z ] || continue
      [ "$leader" != gone ] || carries "\${line%% *}" || continue
      kill "-$1" "\${line%% *}" && found=0
    done
  done
  return "$found"
}

: > "$folder/closing"
for name in TERM KILL; do
  grace=
  while within_grace && signal_sessions "$name"; do
    sleep 0.1 || sleep 1
  done
done
exit 0
`

/**
 * What a command goes through on its way into a box: it takes the tags and secrets from the folder (never from an argument
 * list), and becomes the command. In a session box it records its session first, and then looks whether the box is
 * closing: whoever closes it does the two in the other order, so no session is missed. It starts itself again before that, so that it
 * carries the tags when its session is recorded: a record that names a process without them counts for nothing. The program is looked up first, as the
 * shell would: what is missing is then said in a line for people, not with this script's path. 126 and 127 are a shell's numbers.
 * Its variables have names of their own: one of the same name in the caller's environment would be lost to the command.
 */
export const enterScript = `#!/bin/sh
_lh_folder=\${0%/*}
# shellcheck disable=SC1091
. "$_lh_folder/env"
[ -z "$_lh_lease" ] || export LEASEHOLD_LEASE_ID="$_lh_lease"
if [ -d "$_lh_folder/sessions" ]; then
  if [ -z "$_lh_door" ]; then
    export _lh_door=tagged
    exec /bin/sh "$0" "$@"
  fi
  unset _lh_door
  start_of() {
    # shellcheck disable=SC2086
    set -- \${1##*") "}
    printf '%s\\n' "\${20}"
  }
  read -r _lh_line < /proc/self/stat
  read -r _lh_boot < /proc/sys/kernel/random/boot_id
  printf '%s %s %s\\n' "\${_lh_line%% *}" "$(start_of "$_lh_line")" "$_lh_boot" > "$_lh_folder/sessions/\${_lh_line%% *}" || exit 125
  if [ -e "$_lh_folder/closing" ]; then
    echo "the box is closing" >&2
    exit 125
  fi
  unset _lh_line _lh_boot
fi
unset _lh_folder _lh_lease

${lookUpCommand}exec "$@" 3<&- 4<&-
`
