/** What PostgreSQL writes into its log about sessions, sorted by database. */
import type { LogEntry } from '../managed-server/tenant-logs.ts';

/**
 * The beginning of each line. The name of a database is whatever somebody who is not logged in yet says,
 * line breaks included; it has at most 63 bytes, too few to look like the beginning of another line.
 */
export const LINE_PREFIX = '%m [%p] %qin a session of %d, %e: ';
const LINE = new RegExp(
  `^(\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d)\\.\\d+ UTC \\[\\d+\\] in a session of (d_[a-z0-9]{16}), ` +
    '([0-9A-Z]{5}): ([A-Z]+): {1,2}(.*)$',
);
const ENTRIES = ['ERROR', 'FATAL', 'LOG'];
const PARTS = ['DETAIL', 'HINT', 'CONTEXT', 'QUERY'];
/** A session that was ended. */
const ENDED = ['57P01', '25P03', '57P05'];

interface Entry extends LogEntry {
  text: string;
}

/** In their order. A line that tells of who is not logged in is only for the one whose name was used. */
export function entriesOf(lines: readonly string[]): LogEntry[] {
  const entries: Entry[] = [];
  let last: Entry | null = null;
  for (const line of lines) {
    if (line.startsWith('\t')) {
      if (last) last.text += `\n${line}`;
      continue;
    }
    const [, at = '', database = '', code = '', level = '', text = ''] = LINE.exec(line) ?? [];
    if (last !== null && PARTS.includes(level) && database === last.database) {
      last.text += `\n${level}: ${text}`;
      continue;
    }
    last = null;
    if (!ENTRIES.includes(level)) continue;
    if (level === 'FATAL' && !ENDED.includes(code) && !text.includes(`"u_${database.slice(2)}"`)) continue;
    const entry: Entry = { database, at, text: `${level} ${code}: ${text}` };
    entries.push(entry);
    // What comes with a refused login tells of our settings.
    if (level !== 'FATAL') last = entry;
  }
  return entries;
}
