/**
 * Functions and types in the tables and views of a dump that this server does not have: of MySQL, which are
 * checked when a statement runs, and of newer MariaDB.
 */
import { QUOTED_TEXT } from './names/sql-parts.ts';

const MAKES_UUID = /\buuid_to_bin\(\s*uuid\(\)\s*(?:,\s*(\w+)\s*)?\)/gi;
const SHOWS_UUID = /\bbin_to_uuid\(([^(),']+)(?:,\s*(\w+)\s*)?\)/gi;
/** Functions of MariaDB from 11.7 on, in its own dumps. */
const UUID_OF_VERSION = /\buuid_v[47]\(\)/gi;
const AS_JSON = /\bcast\(((?:[^()]|\([^()]*\))+) as json\)/gi;
const ANY_VALUE = /\bany_value\(((?:[^()]|\([^()]*\))+)\)/gi;
/** A column of MySQL 9; MariaDB has the type from 11.7 on. */
const VECTOR = /^( {2}\0\d+\0) vector\((\d{1,5})\)/;
const MATCHES = /\bregexp_like\(([^(),]+),([^(),]+)\)/gi;
/** How MySQL 4 gave the width of a time. */
const WIDE_TIME = /^(\s*(?:\0\d+\0|\w+) timestamp)\((?:[7-9]|1\d)\)/i;
const EACH_QUOTED = new RegExp(QUOTED_TEXT.source, 'g');
/** The place of a quoted part in a line without them. */
const PLACE = /\0(\d+)\0/g;
const NO_FUNCTION = 'the server has no such function; others do the same';
const IS_OFF = /^(?:0|false)$/i;

interface Rewriting {
  readonly tell: (text: string, reason: string) => void;
  readonly keepsVersions: boolean;
}

/** The line with functions that this server has. Reports each replacement with its reason. */
export function withoutNewFunctions(line: string, { tell, keepsVersions }: Rewriting): string {
  if (!/^ {2}(?:`|CONSTRAINT |\w+ timestamp\()|^\/\*!50001 VIEW /.test(line)) return line;
  const quoted: string[] = [];
  const bare = line.replaceAll(EACH_QUOTED, (text) => `\0${quoted.push(text) - 1}\0`);
  const whole = (text: string) => text.replaceAll(PLACE, (_, at: string) => quoted[Number(at)] ?? '');
  const made = bare.replaceAll(MAKES_UUID, (call) => {
    tell(call, `${NO_FUNCTION}, with parts of the time in the order of the text`);
    return "unhex(replace(uuid(),'-',''))";
  });
  const compact = made.replaceAll(AS_JSON, (call, of: string) => {
    tell(whole(call), NO_FUNCTION);
    return `json_compact(${of})`;
  });
  const bare8 = compact.replaceAll(ANY_VALUE, (call, of: string) => {
    tell(whole(call), 'the server picks any value of a group anyway');
    return `(${of})`;
  });
  const timed = bare8.replace(WIDE_TIME, (_, before: string) => {
    tell('timestamp(14)', 'times have at most 6 digits after the seconds; the width of MySQL 4 is left out');
    return before;
  });
  const typed = keepsVersions
    ? timed
    : timed.replace(VECTOR, (_, name: string, count: string) => {
        tell(`vector(${count})`, 'the server has no vector type; the column stores their bytes');
        return `${name} varbinary(${Number(count) * 4})`;
      });
  const random = typed.replaceAll(UUID_OF_VERSION, (call) => {
    if (keepsVersions) return call;
    tell(call, 'the server has no such function: new rows get UUIDs of version 1 by uuid()');
    return 'uuid()';
  });
  const matching = random.replaceAll(MATCHES, (call, text: string, match: string) => {
    tell(whole(call), NO_FUNCTION);
    return `(${text.trim()} regexp ${match.trim()})`;
  });
  const shows = matching.replaceAll(SHOWS_UUID, (call, of: string, isSwapped = '0') => {
    tell(whole(call), NO_FUNCTION);
    const parts = IS_OFF.test(isSwapped) ? SHOWN : SWAPPED;
    return `lower(concat_ws('-',${parts.map(([at, length]) => `substr(hex(${of}),${at},${length})`).join()}))`;
  });
  return whole(shows);
}

/** Where the parts of a UUID stand among its digits, and their length. */
const SHOWN = [
  [1, 8],
  [9, 4],
  [13, 4],
  [17, 4],
  [21, 12],
] as const;
/** With the parts of the time swapped, as uuid_to_bin(…, 1) stores it. */
const SWAPPED = [
  [9, 8],
  [5, 4],
  [1, 4],
  [17, 4],
  [21, 12],
] as const;
