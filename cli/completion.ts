/** Completion for bash, zsh and fish, from the table of commands. */
import { COMMON_OPTIONS, type Command } from './command.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** Completions by prefix: words after `cloudlet`, words after `cloudlet vm`, and options. */
interface Choices {
  readonly first: readonly string[];
  /** Second words by first word. */
  readonly second: ReadonlyMap<string, readonly string[]>;
  /** Options by full command name. */
  readonly options: ReadonlyMap<string, readonly string[]>;
  /** Command names by the kind of resource name that they take. */
  readonly named: ReadonlyMap<NameKind, readonly string[]>;
}

/** Kind of names to complete, by the placeholder in the help. */
const KINDS = { VM: 'vm', DATABASE: 'db', BUCKET: 'bucket', KEY: 'key', PROFILE: 'profile' } as const;
export type NameKind = (typeof KINDS)[keyof typeof KINDS];
export const NAME_KINDS: readonly NameKind[] = Object.values(KINDS);

/** Other names would need quoting in a shell. */
export const isPlainName = (name: string) => /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name);

function namedBy(commands: readonly Command[]): Map<NameKind, string[]> {
  const named = new Map<NameKind, string[]>();
  for (const { name, words } of commands) {
    const [, word = ''] = /^\[?([A-Z]+)/.exec(words) ?? [];
    const kind = word in KINDS ? KINDS[word as keyof typeof KINDS] : undefined;
    // A resource to be created has no name yet.
    if (kind !== undefined && name !== 'mb') named.set(kind, [...(named.get(kind) ?? []), name]);
  }
  return named;
}

function choicesOf(commands: readonly Command[]): Choices {
  const second = new Map<string, readonly string[]>();
  const options = new Map<string, string[]>();
  for (const { name, options: own = {} } of commands) {
    const [head = '', tail] = name.split(' ');
    if (tail !== undefined) second.set(head, [...(second.get(head) ?? []), tail]);
    options.set(
      name,
      Object.keys({ ...own, ...COMMON_OPTIONS }).map((option) => `--${option}`),
    );
  }
  const first = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))];
  second.set('help', first);
  second.set('completion', SHELLS);
  return { first, second, options, named: namedBy(commands) };
}

/** A script that the shell reads. */
export function completionScript(shell: Shell, commands: readonly Command[]): string {
  const choices = choicesOf(commands);
  if (shell === 'fish') return fishScript(commands);
  const bash = bashScript(choices);
  return shell === 'bash' ? bash : `${ZSH_START}\n${bash}`;
}

/**
 * zsh supports bash's completion functions once its own completion is loaded, which a bare .zshrc does not
 * do.
 */
const ZSH_START = `autoload -Uz compinit bashcompinit
(( $+functions[compdef] )) || compinit
bashcompinit`;

function bashScript({ first, second, options, named }: Choices): string {
  const kinds = [...named].map(([kind, names]) => {
    return `    ${names.map((name) => `'${name}'`).join('|')}) kind=${kind} ;;`;
  });
  const seconds = [...second].map(([head, tails]) => `    ${head}) words='${tails.join(' ')}' ;;`);
  const ofEach = [...options].map(([name, own]) => `      '${name}') words='${own.join(' ')}' ;;`);
  return `_cloudlet() {
  local word=\${COMP_WORDS[COMP_CWORD]} words='' kind='' before='' line
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
  case $COMP_CWORD in 2) before=$one ;; 3) before=$two ;; esac
  case $before in
${kinds.join('\n')}
  esac
  [ "\${word#-}" = "$word" ] || kind=''
  COMPREPLY=()
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -W "$words" -- "$word")
  [ -n "$kind" ] || return 0
  while IFS= read -r line; do
    case $line in "$word"*) COMPREPLY+=("$line") ;; esac
  done < <(cloudlet completion --names "$kind" 2>/dev/null)
}
complete -o default -o bashdefault -F _cloudlet cloudlet`;
}

function fishScript(commands: readonly Command[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "\\'")}'`;
  const after = (count: number) => `test (count (commandline -opc)) -eq ${count}`;
  const heads = new Set<string>();
  const lines = commands.flatMap(({ name, summary, options = {} }) => {
    const [head = '', tail] = name.split(' ');
    const isNew = !heads.has(head);
    heads.add(head);
    const shown = tail === undefined ? ` -d ${quoted(summary)}` : '';
    const first = isNew ? [`complete -c cloudlet -n __fish_use_subcommand -f -a ${head}${shown}`] : [];
    const isHead = `__fish_seen_subcommand_from ${head}`;
    const rest =
      tail === undefined
        ? []
        : [`complete -c cloudlet -n '${isHead}; and ${after(2)}' -f -a ${tail} -d ${quoted(summary)}`];
    const condition = tail === undefined ? isHead : `${isHead}; and __fish_seen_subcommand_from ${tail}`;
    const own = Object.entries(options).map(([option, { summary: text, value }]) => {
      const takes = value === undefined ? '' : ' -r';
      return `complete -c cloudlet -n '${condition}' -l ${option}${takes} -d ${quoted(text)}`;
    });
    return [...first, ...rest, ...own];
  });
  const names = [...namedBy(commands)].flatMap(([kind, all]) =>
    all.map((name) => {
      const parts = name.split(' ');
      const seen = parts.map((part) => `__fish_seen_subcommand_from ${part}`);
      seen.push(after(parts.length + 1));
      return `complete -c cloudlet -n '${seen.join('; and ')}' -f -a '(cloudlet completion --names ${kind} 2>/dev/null)'`;
    }),
  );
  const words = (head: string, all: readonly string[]) =>
    `complete -c cloudlet -n '__fish_seen_subcommand_from ${head}; and ${after(2)}' -f -a '${all.join(' ')}'`;
  return [...lines, ...names, words('help', [...heads]), words('completion', SHELLS)].join('\n');
}
