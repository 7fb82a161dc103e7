/** Texts read as dates. */
import { CommandError } from '../../command-error.ts';
import { civil, DAY_MS, fromLocal, weekStart, type Zone, zoneOf } from './time-zones.ts';

function failed(text: string, why = 'it is not a date'): CommandError {
  return new CommandError('ConversionFailure', `Error parsing date string '${text}': ${why}`);
}

const UTC = zoneOf(undefined);
const ISO =
  /^\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[T\s]+(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?)?\s*$/i;

/** Milliseconds. `zone`: for a text without one; undefined: UTC. Throws CommandError. */
export function parseDate(text: string, zone?: Zone): number {
  const found = ISO.exec(text);
  if (found === null) return parseWords(text, zone);
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((each) => Number(each ?? 0)) as Six;
  const [fraction = '', named] = [found[7], found[8]];
  const isRight =
    month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour < 24 && minute < 60 && second < 61;
  const days = civil([year, month, day]);
  if (!isRight || new Date(days).getUTCMonth() !== month - 1) throw failed(text);
  const millisecond = Number(fraction.padEnd(3, '0').slice(0, 3));
  return inZone(text, civil([year, month, day], [hour, minute, second, millisecond]), { named, zone });
}

type Six = [number, number, number, number, number, number];

function inZone(
  text: string,
  localMs: number,
  { named, zone }: { named?: string | undefined; zone?: Zone | undefined },
) {
  if (named !== undefined && zone !== undefined)
    throw failed(text, "it has a time zone, but 'timezone' was given too");
  return fromLocal(localMs, named === undefined ? (zone ?? UTC) : zoneOf(named.toUpperCase()));
}

/** Months by name, as JavaScript reads them; a text without a year is invalid. */
function parseWords(text: string, zone?: Zone): number {
  const plain = text.replace(/(\d)(?:st|nd|rd|th)\b/gi, '$1');
  const isNamed = /(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\s*$/i.test(plain);
  const ms =
    /\b\d{4}\b/.test(plain) && /[a-z]{3}|\//i.test(plain)
      ? Date.parse(isNamed ? plain : `${plain} UTC`)
      : Number.NaN;
  if (Number.isNaN(ms)) throw failed(text);
  return isNamed ? ms : fromLocal(ms, zone ?? UTC);
}

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const READ: Readonly<Record<string, string>> = {
  Y: '\\d{4}',
  G: '\\d{4}',
  m: '\\d{1,2}',
  d: '\\d{1,2}',
  H: '\\d{1,2}',
  M: '\\d{1,2}',
  S: '\\d{1,2}',
  L: '\\d{1,3}',
  j: '\\d{1,3}',
  V: '\\d{1,2}',
  u: '\\d',
  b: '[A-Za-z]{3}',
  B: '[A-Za-z]{3,9}',
  z: 'Z|[+-]\\d\\d:?\\d\\d|[A-Za-z][A-Za-z_/]+',
  Z: '[+-]?\\d{1,4}',
};

/** Parses with a format of `$dateFromString`. Throws CommandError. */
export function parseWith(text: string, format: string, zone?: Zone): number {
  const names: string[] = [];
  const pattern = format.replace(/%(.?)|[.*+?^${}()|[\]\\/]/gs, (whole, token?: string) => {
    if (token === undefined) return `\\${whole}`;
    if (token === '%') return '%';
    if (!Object.hasOwn(READ, token))
      throw new CommandError(18536, `Invalid format character '%${token}' in format string`);
    names.push(token);
    return `(${READ[token]})`;
  });
  const found = new RegExp(`^${pattern}$`, 's').exec(text);
  if (found === null) throw failed(text, `it does not match the format '${format}'`);
  const parts = new Map(names.map((name, i) => [name, found[i + 1] as string]));
  const part = (name: string, otherwise: number) => Number(parts.get(name) ?? otherwise);
  const named = parts.get('z');
  const minutes = parts.has('Z') ? part('Z', 0) : null;
  const time = [part('H', 0), part('M', 0), part('S', 0), part('L', 0)];
  const isRight = (time[0] as number) < 24 && (time[1] as number) < 60 && (time[2] as number) < 61;
  const days = daysOf(parts, part);
  if (!isRight || days === null) throw failed(text);
  const [hour, minute, second, millisecond] = time as [number, number, number, number];
  const localMs = days + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond;
  return minutes === null ? inZone(text, localMs, { named, zone }) : localMs - minutes * 60_000;
}

/** Null: no such day. */
function daysOf(
  parts: ReadonlyMap<string, string>,
  part: (name: string, otherwise: number) => number,
): number | null {
  if (parts.has('G')) {
    const first = weekStart(civil([part('G', 1970), 1, 4]), 1);
    return first + ((part('V', 1) - 1) * 7 + part('u', 1) - 1) * DAY_MS;
  }
  const year = part('Y', 1970);
  if (parts.has('j')) return civil([year, 1, part('j', 1)]);
  const word = (parts.get('b') ?? parts.get('B'))?.slice(0, 3).toLowerCase();
  const month = word === undefined ? part('m', 1) : MONTHS.indexOf(word) + 1;
  const day = part('d', 1);
  const days = civil([year, month, day]);
  return month >= 1 && day >= 1 && new Date(days).getUTCMonth() === month - 1 ? days : null;
}
