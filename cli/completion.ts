/** Completion for bash, zsh and fish, from the table of commands. */
import { COMMON_OPTIONS, type Command } from './command.ts';

export type Shell = 'bash' | 'zsh' | 'fish';

/** What may follow each beginning: words after `cloudlet`, words after `cloudlet vm`, and options. */
interface Choices {
  readonly first: readonly string[];
  /** By first word: the second words. */
  readonly second: ReadonlyMap<string, readonly string[]>;
  /** By whole name: its options. */
  readonly options: ReadonlyMap<string, readonly string[]>;
}

function choicesOf(commands: readonly Command[]): Choices {
  const second = new Map<string, string[]>();
  const options = new Map<string, string[]>();
  for (const { name, options: own = {} } of commands) {
    const [head = '', tail] = name.split(' ');
    if (tail !== undefined) second.set(head, [...(second.get(head) ?? []), tail]);
    options.set(
      name,
      Object.keys({ ...own, ...COMMON_OPTIONS }).map((option) => `--${option}`),
    );
  }
  return { first: [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))], second, options };
}

/** A script that the shell reads. */
export function completionScript(shell: Shell, commands: readonly Command[]): string {
  const choices = choicesOf(commands);
  if (shell === 'fish') return fishScript(commands);
  const bash = bashScript(choices);
  // zsh reads the functions of bash.
  return shell === 'bash' ? bash : `autoload -U +X bashcompinit && bashcompinit\n${bash}`;
}

function bashScript({ first, second, options }: Choices): string {
  const seconds = [...second].map(([head, tails]) => `    ${head}) words='${tails.join(' ')}' ;;`);
  const ofEach = [...options].map(([name, own]) => `      '${name}') words='${own.join(' ')}' ;;`);
  return `_cloudlet() {
  local word=\${COMP_WORDS[COMP_CWORD]} words=''
  local one=\${COMP_WORDS[1]} two="\${COMP_WORDS[1]} \${COMP_WORDS[2]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='${first.join(' ')}'
  elif [ "\${word#-}" != "$word" ]; then
    case "$two" in
${ofEach.filter((line) => line.includes(' ', 8) && /'\w+ \w+'\)/.test(line)).join('\n')}
      *) case "$one" in
${ofEach.filter((line) => !/'\w+ \w+'\)/.test(line)).join('\n')}
      esac ;;
    esac
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "$one" in
${seconds.join('\n')}
    esac
  fi
  COMPREPLY=()
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -W "$words" -- "$word")
}
complete -o default -o bashdefault -F _cloudlet cloudlet`;
}

function fishScript(commands: readonly Command[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "\\'")}'`;
  const heads = new Set<string>();
  const lines = commands.flatMap(({ name, summary, options = {} }) => {
    const [head = '', tail] = name.split(' ');
    const isNew = !heads.has(head);
    heads.add(head);
    const shown = tail === undefined ? ` -d ${quoted(summary)}` : '';
    const first = isNew ? [`complete -c cloudlet -n __fish_use_subcommand -f -a ${head}${shown}`] : [];
    const isHead = `__fish_seen_subcommand_from ${head}`;
    const rest =
      tail === undefined ? [] : [`complete -c cloudlet -n '${isHead}' -f -a ${tail} -d ${quoted(summary)}`];
    const condition = tail === undefined ? isHead : `${isHead}; and __fish_seen_subcommand_from ${tail}`;
    const own = Object.entries(options).map(([option, { summary: text, value }]) => {
      const takes = value === undefined ? '' : ' -r';
      return `complete -c cloudlet -n '${condition}' -l ${option}${takes} -d ${quoted(text)}`;
    });
    return [...first, ...rest, ...own];
  });
  return lines.join('\n');
}
