/** What MariaDB writes into its log about sessions, sorted by database. It tells of no failed statement. */
import type { LogEntry } from '../managed-server/tenant-logs.ts';

const LINE =
  /^(\d{4}-\d\d-\d\d) +(\d{1,2}:\d\d:\d\d) \d+ \[Warning\] ((?:Access denied for|Aborted connection) .*)$/;
const USER = /^A[a-z ]+(?:\d+ to db: '[^']*' )?user:? '(u_[a-z0-9]{16})'(?:@| host:)/;

export function entriesOf(lines: readonly string[]): LogEntry[] {
  return lines.flatMap((line) => {
    const [, day = '', time = '', text = ''] = LINE.exec(line) ?? [];
    const user = USER.exec(text)?.[1];
    return user === undefined
      ? []
      : [{ database: user.replace(/^u_/, 'd_'), at: `${day} ${time.padStart(8, '0')}`, text }];
  });
}
