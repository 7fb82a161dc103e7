/** A line of the log as people read it: time, level, message, fields. */
import { styleText } from 'node:util';

interface Entry {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
  readonly err?: { readonly stack?: string };
}

/** By pino's numbers. */
const LEVELS: Readonly<Record<number, { name: string; style: Parameters<typeof styleText>[0] }>> = {
  20: { name: 'debug', style: 'dim' },
  30: { name: 'info', style: 'green' },
  40: { name: 'warn', style: 'yellow' },
  50: { name: 'error', style: 'red' },
  60: { name: 'fatal', style: 'red' },
};
const INDENT = '    ';

/**
 * `json` is one line of pino's. Errors come last, with their stack on lines of their own. `stream` is where
 * it goes: colours are for a terminal, unless NO_COLOR says otherwise.
 */
export function readableLine(json: string, stream: NodeJS.WritableStream): string {
  const { level, time, msg = '', err, pid, hostname, ...fields } = JSON.parse(json) as Entry & Fields;
  const { name, style } = LEVELS[level] ?? { name: String(level), style: 'dim' };
  const paint = (how: typeof style, text: string) => styleText(how, text, { stream });
  const told = Object.entries(fields).map(([field, value]) => paint('dim', `${field}=${valueText(value)}`));
  const at = new Date(time).toISOString().replace('T', ' ').slice(0, 19);
  const head = [`${at}Z`, paint(style, name.padEnd(5)), visible(msg), ...told].join(' ');
  return `${head}\n${err === undefined ? '' : errorText(err)}`;
}

type Fields = Readonly<Record<string, unknown>>;

function valueText(value: unknown): string {
  const isPlain = typeof value === 'string' && /^[^\s"=]+$/.test(value);
  return visible(isPlain ? value : JSON.stringify(value));
}

function errorText({ stack = '', ...more }: NonNullable<Entry['err']> & Fields): string {
  const { type, message, ...rest } = more;
  const text = stack === '' ? `${type}: ${message}` : stack;
  const lines = Object.keys(rest).length === 0 ? [text] : [text, JSON.stringify(rest)];
  return `${lines
    .join('\n')
    .split('\n')
    .map((line) => INDENT + visible(line.trimEnd()))
    .join('\n')}\n`;
}

/** What strangers sent is in some lines: it must not steer the terminal. */
function visible(text: string): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped);
}
