/** `help`, `version` and `completion`: what the client says about itself. */
import description from '../package.json' with { type: 'json' };
import type { Command, Invocation } from './command.ts';
import { completionScript, type Shell } from './completion.ts';
import { UsageError } from './failures.ts';
import { helpOf, helpOfGroup, overview, type Topic } from './help.ts';
import { findCommand } from './words.ts';

const SHELLS: readonly Shell[] = ['bash', 'zsh', 'fish'];

/** `topics`: all of them, these commands included; asked late, since they are part of it. */
export function generalCommands(topics: () => readonly Topic[]): Command[] {
  const all = () => topics().flatMap(({ commands }) => commands);
  return [
    {
      name: 'help',
      words: '[COMMAND…]',
      summary: 'explain a command, or list all',
      run: async ({ words, output }) => output.text(helpFor(topics(), words)),
    },
    {
      name: 'completion',
      words: 'SHELL',
      summary: 'print the completion for bash, zsh or fish',
      details: [
        'bash: source <(cloudlet completion bash)',
        'zsh:  source <(cloudlet completion zsh)',
        'fish: cloudlet completion fish | source',
      ].join('\n'),
      run: async ({ words: [name = ''], output }) => {
        const shell = SHELLS.find((each) => each === name);
        if (shell === undefined) throw new UsageError(`no completion for ${name}: use ${SHELLS.join(', ')}`);
        output.text(completionScript(shell, all()));
      },
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

/** The help for these words. Throws UsageError if they name nothing. */
export function helpFor(topics: readonly Topic[], words: readonly string[]): string {
  if (words.length === 0) return overview(topics);
  const commands = topics.flatMap((topic) => topic.commands);
  const found = findCommand(commands, words);
  if (found !== undefined && found.rest.length === 0) return helpOf(found.command);
  const group = commands.filter(({ name }) => name.startsWith(`${words.join(' ')} `));
  if (group.length > 0) return helpOfGroup(group);
  throw new UsageError(`unknown command "${words.join(' ')}"`, 'See: cloudlet help');
}
