
_agentd() {
    local rest=$COMP_LINE before='' gap word prefix='' last=-1 i
    local -a joined=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        gap=$rest
        [[ -n $word ]] && gap=${rest%%"$word"*}
        rest=${rest:$((${#gap} + ${#word}))}
        # Without a space in between, it is a piece of the word before.
        if [[ $last -gt 0 && -z $gap && ($word == [:=]* || $before == *[:=]) ]]; then
            prefix=${joined[last]}
            joined[last]=$prefix$word
        else
            prefix=''
            last=$((last + 1))
            joined[last]=$word
        fi
        before=$word
    done
    # Up to the cursor; behind a `:` alone, bash says that nothing was typed.
    local typed=$2
    if [[ -n $prefix && $before == [:=]* ]]; then
        prefix=$prefix$before
        typed=''
    fi
    local -a COMP_WORDS=("${joined[@]}")
    local COMP_CWORD=$last
    _clap_complete_agentd "$1" "$prefix$typed" "$3"
    [[ -n $prefix && ${#COMPREPLY[@]} -gt 0 ]] && COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    return 0
}
complete -o nospace -o bashdefault -F _agentd agentd
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _agentd agentd
fi
