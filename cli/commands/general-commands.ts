/** `help`, `version` and `completion`: commands about the client itself. */
import description from '../../package.json' with { type: 'json' };
import type { Command, Invocation } from '../command.ts';
import { completionScript, isPlainName, NAME_KINDS, SHELLS } from '../completion.ts';
import { UsageError } from '../failures.ts';
import { helpOf, helpOfGroup, overview, type Topic } from '../help.ts';
import { nearest } from '../nearest.ts';
import { all } from '../resources.ts';
import { Profiles } from '../sign-in/profiles.ts';
import { findCommand } from '../words.ts';

async function namesOf(kind: string, session: Invocation['session']): Promise<string[]> {
  switch (kind) {
    case 'vm':
      return (await all(session().cloud.listVms())).map(({ name }) => name);
    case 'db':
      return (await all(session().cloud.listDatabases())).map(({ name }) => name);
    case 'bucket':
      return (await all(session().cloud.listBuckets())).map(({ name }) => name);
    case 'key':
      return (await all(session().cloud.listAccessKeys())).map(({ name }) => name);
    case 'profile':
      return Profiles.read().names;
    default:
      throw new UsageError(`cannot complete ${kind}: use ${NAME_KINDS.join(', ')}`);
  }
}

/** `topics`: all topics, including these commands, so it is evaluated lazily. */
export function generalCommands(topics: () => readonly Topic[]): Command[] {
  const commands = () => topics().flatMap((topic) => topic.commands);
  const complete = async ({ words: [name], options, session, output }: Invocation) => {
    const kind = options.text('names');
    if (kind !== undefined) {
      const names = (await namesOf(kind, session)).filter(isPlainName);
      if (names.length > 0) output.text(names.join('\n'));
      return;
    }
    const shell = SHELLS.find((each) => each === name);
    const shells = SHELLS.join(', ');
    if (name === undefined) throw new UsageError(`the shell is missing: ${shells}`);
    if (shell === undefined) throw new UsageError(`no completion for shell ${name}: use ${shells}`);
    output.text(completionScript(shell, commands()));
  };
  return [
    {
      name: 'help',
      words: '[COMMAND…]',
      summary: 'show help for a command, or list all commands',
      run: async ({ words, output }) => output.text(helpFor(topics(), words)),
    },
    {
      name: 'completion',
      words: '[SHELL]',
      summary: 'print the completion script for bash, zsh or fish',
      details: [
        'bash: source <(cloudlet completion bash)',
        'zsh:  source <(cloudlet completion zsh)',
        'fish: cloudlet completion fish | source',
      ].join('\n'),
      options: { names: { value: 'KIND', summary: `names to complete: ${NAME_KINDS.join(', ')}` } },
      run: complete,
    },
    {
      name: 'version',
      words: '',
      summary: 'print the version of the client',
      run: async (call: Invocation) =>
        call.output.one({ version: VERSION, node: process.versions.node }, () => [`cloudlet ${VERSION}`]),
    },
  ];
}

export const VERSION: string = description.version;

/** The help for these words. Throws UsageError if they are no command or topic. */
export function helpFor(topics: readonly Topic[], words: readonly string[]): string {
  if (words.length === 0) return overview(topics);
  const commands = topics.flatMap((topic) => topic.commands);
  const found = findCommand(commands, words);
  if (found !== undefined) return helpOf(found.command);
  const [first = ''] = words;
  const group = commands.filter(({ name }) => name.startsWith(`${first} `));
  if (group.length > 0 && words.length === 1) return helpOfGroup(group);
  const names = commands.map(({ name }) => name);
  const one = group.length > 0 ? undefined : nearest(first, names);
  const guess = one ?? nearest(words.slice(0, 2).join(' '), names);
  // A path is not part of a command.
  const count = one === undefined && !/[/:]/.test(words[1] ?? '') ? 2 : 1;
  const typed = words.slice(0, count).join(' ');
  const meant = guess === undefined ? '' : `; did you mean "${guess}"?`;
  throw new UsageError(
    `unknown command "${typed}"${meant}`,
    `See: cloudlet help${group.length > 0 ? ` ${first}` : ''}`,
  );
}
