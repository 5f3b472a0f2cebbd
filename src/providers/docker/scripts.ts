/**
 * Shell scripts that run in a box: POSIX sh, as arguments and not as files, because an image has none of ours. They hold no value of any box, and pass
 * shellcheck. All that they need is `/bin/sh`, and `sleep` and the like in the image.
 */
import { lookUpCommand } from '../../lib/shell-lookup.ts'
import { privateFolder } from './words.ts'

/**
 * First process of a box, and its dead-man clock. `$1`: how long it may live, in seconds; `$2`: the seconds between TERM and its end. As pid 1 nothing
 * inside can kill it, and when it goes, the kernel kills all the rest. A file says when the deadline moved, in seconds since the machine's boot, and HUP
 * that it did.
 */
export const clockScript = `
ending=
trap : HUP INT QUIT USR1 USR2 ALRM
trap 'ending=1' TERM
exec 2> /dev/null
look() {
  read -r up _ < /proc/uptime
  now=\${up%.*}
}
look
deadline=$((now + $1))
while :; do
  if read -r written < ${privateFolder}/deadline; then
    case $written in
      '' | *[!0-9]*) ;;
      *) deadline=$written ;;
    esac
  fi
  look
  left=$((deadline - now))
  [ -z "$ending" ] && [ "$left" -gt 0 ] || break
  # At most a minute: this clock goes on while the machine is suspended, and a sleep does not.
  [ "$left" -le 60 ] || left=60
  sleep "$left" &
  sleeper=$!
  wait "$sleeper"
  case $? in
    0) ;;
    # There is no sleep in the image: better no box than one without an end.
    [1-9] | [1-9][0-9] | 1[01]? | 12[0-7]) exit 1 ;;
    *) kill "$sleeper" ;;
  esac
done
kill -TERM -1
kill -CONT -1
look
end=$((now + $2))
while [ "$now" -lt "$end" ] && kill -0 -1; do
  sleep 0.1 || sleep 1
  look
done
exit 0
`

/**
 * Once, after the start, as root: what a command finds set, from the input, and a volume that its user may write. `$1`: the volume's folder, `$2`: the user,
 * `$3`: the line that the input ends with, so that nothing hangs on the end of a stream.
 */
export const furnishScript = `
umask 022
# An image that has this folder already gives it the mode that it has there.
chmod 1777 ${privateFolder} || exit 1
while IFS= read -r line && [ "$line" != "$3" ]; do
  printf '%s\\n' "$line"
done > ${privateFolder}/env.new
[ "$line" = "$3" ] || exit 1
mv ${privateFolder}/env.new ${privateFolder}/env || exit 1
[ -z "$2" ] || chown "$2" "$1"
`

/** Moves the deadline: \`$1\` seconds from now, under the number \`$2\`: what was asked for under a smaller one than it was moved by last comes too late. */
export const rearmScript = `
last=
read -r last < ${privateFolder}/deadline.order
case $last in
  '' | *[!0-9]* | ?????????????????*) last=0 ;;
esac
[ "$last" -le "$2" ] || exit 9
echo "$2" > ${privateFolder}/deadline.order.new && mv ${privateFolder}/deadline.order.new ${privateFolder}/deadline.order || exit 1
read -r up _ < /proc/uptime
echo $((\${up%.*} + $1)) > ${privateFolder}/deadline.new && mv ${privateFolder}/deadline.new ${privateFolder}/deadline && kill -HUP 1
`

/**
 * What a command goes through on its way into a box. `$1`: a name for it, so that a signal finds it: it leads a session of its own. The variables come from
 * a file and never from an argument list.
 */
export const enterScript = `
_lh_name=$1
shift
echo $$ > "${privateFolder}/command-$_lh_name" || exit 125
# What was given with the command stands above what the box was made with.
_lh_lease=$LEASEHOLD_LEASE_ID _lh_token=$LEASEHOLD_LEASE_TOKEN
# shellcheck disable=SC1091
. ${privateFolder}/env || exit 125
[ -z "$_lh_token" ] || export LEASEHOLD_LEASE_ID="$_lh_lease" LEASEHOLD_LEASE_TOKEN="$_lh_token"
unset _lh_name _lh_lease _lh_token
${lookUpCommand}
exec "$@"
`

/** Passes a signal on to all that the command's session holds. `$1`: its name, `$2`: the signal. */
export const signalScript = `
read -r pid < "${privateFolder}/command-$1" || exit 1
kill -s "$2" -- "-$pid" || kill -s "$2" "$pid"
`

/** Empties the folders that are given: what is in them, and not they themselves. */
export const emptyScript = `
for folder in "$@"; do
  rm -rf -- "$folder"/..?* "$folder"/.[!.]* "$folder"/*
done
`

/** What is in memory: names, of which the box's own are taken away. Then the text that commands are let in by. */
export const memoryScript = `
for folder in "$@"; do
  for file in "$folder"/..?* "$folder"/.[!.]* "$folder"/*; do
    [ ! -e "$file" ] && [ ! -h "$file" ] && continue
    case $file in
      ${privateFolder}/deadline) ;;
      ${privateFolder}/deadline.order)
        read -r order < "$file"
        case $order in
          '' | *[!0-9]*) echo "$file, which is not as it was made" ;;
        esac
        ;;
      ${privateFolder}/env) [ ! -s "$file" ] && [ ! -h "$file" ] || echo "$file, which is not as it was made" ;;
      *) printf '%s\\n' "$file" ;;
    esac
  done
done
`
