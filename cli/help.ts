/** Help, from the table of commands. */
import { COMMON_OPTIONS, type Command, type Option } from './command.ts';
import { usageOf } from './words.ts';

/** Commands by topic, in the order of the help. */
export interface Topic {
  readonly title: string;
  readonly commands: readonly Command[];
}

/** All commands, one line each. */
export function overview(topics: readonly Topic[]): string {
  const lines = topics.flatMap(({ title, commands }) => ['', title, ...columnsOf(commands.map(commandLine))]);
  return [
    'Usage: cloudlet COMMAND …',
    ...lines,
    '',
    'Options for every command',
    ...columnsOf(Object.entries(COMMON_OPTIONS).map(optionLine)),
    '',
    'cloudlet help COMMAND explains a command. Remote files are s3://BUCKET/NAME; other paths are local.',
  ].join('\n');
}

/** One command with its options. */
export function helpOf(command: Command): string {
  const options = Object.entries(command.options ?? {}).map(optionLine);
  return [
    `Usage: ${usageOf(command)}`,
    '',
    `  ${command.summary}`,
    ...(command.details === undefined ? [] : ['', ...command.details.split('\n').map((line) => `  ${line}`)]),
    ...(options.length === 0 ? [] : ['', 'Options', ...columnsOf(options)]),
  ].join('\n');
}

/** The commands that share this first word. */
export function helpOfGroup(commands: readonly Command[]): string {
  return ['Usage:', ...columnsOf(commands.map(commandLine))].join('\n');
}

type Line = readonly [string, string];

function commandLine({ name, words, summary }: Command): Line {
  return [`${name} ${words}`.trim(), summary];
}

function optionLine([name, { value, short, summary }]: readonly [string, Option]): Line {
  const long = value === undefined ? `--${name}` : `--${name} ${value}`;
  return [short === undefined ? long : `-${short}, ${long}`, summary];
}

function columnsOf(lines: readonly Line[]): string[] {
  const width = Math.max(...lines.map(([left]) => left.length));
  return lines.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}

/** The table of commands in docs/client.md. */
export function markdownTable(topics: readonly Topic[]): string {
  const rows = topics.flatMap(({ commands }) =>
    commands.map((command) => {
      const usage = `${command.name} ${command.words}`.trim().replaceAll('|', '\\|');
      const names = Object.keys(command.options ?? {}).map((name) => `\`--${name}\``);
      return `| \`${usage}\` | ${command.summary.replaceAll('|', '\\|')} | ${names.join(' ')} |`;
    }),
  );
  return ['| command | what it does | options |', '|---|---|---|', ...rows].join('\n');
}
