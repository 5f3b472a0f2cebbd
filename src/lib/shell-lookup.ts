/**
 * Shell text that looks `$1` up as the shell itself would, before it is run: what is missing is then said in a line for people, not with a script's path, and
 * with a shell's numbers: 126 not executable, 127 not found. Its variables have names of their own, and none is left: one of the same name in the caller's
 * environment would be lost to the command.
 */
export const lookUpCommand = `# $1: what is wrong, $2: the exit status.
refuse() {
  printf 'leasehold: %s: %s\\n' "\${_lh_program:-''}" "$1" >&2
  exit "$2"
}
_lh_program=$1
_lh_verdict=missing
look() {
  if [ -d "$1" ] || { [ -e "$1" ] && [ ! -x "$1" ]; }; then
    _lh_verdict=unusable
  elif [ -e "$1" ]; then
    _lh_verdict=found
  fi
}
case $_lh_program in
  '') ;;
  */*) look "$_lh_program" ;;
  *)
    _lh_rest=$PATH:
    while [ -n "$_lh_rest" ] && [ "$_lh_verdict" != found ]; do
      _lh_entry=\${_lh_rest%%:*}
      _lh_rest=\${_lh_rest#*:}
      look "\${_lh_entry:-.}/$_lh_program"
    done
    ;;
esac
case $_lh_verdict in
  missing) refuse 'not found' 127 ;;
  unusable) refuse 'not executable' 126 ;;
esac
unset _lh_program _lh_verdict _lh_rest _lh_entry
`
