/**
 * Imported before the server. Writes a line for each call whose effect was committed without its entry in the
 * audit log: the call has changed the metadata, and its entry is stored in no commit of its own.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Trail } from '../../server/audit/trail.ts';
import type { AuditEntry } from '../../server/calls/audit.ts';
import { SqliteMetadata } from '../../server/drivers/metadata-sqlite/sqlite-metadata.ts';
import { AuditedCall } from '../../server/http/audited.ts';
import type { Statement } from '../../server/metadata/metadata.ts';

interface Seen {
  readonly changes: string[];
  hasEntry: boolean;
}

const calls = new AsyncLocalStorage<Seen>();
const TABLE = /^\s*(?:INSERT (?:OR \w+ )?INTO|UPDATE|DELETE FROM)\s+(\w+)/;
/** The answers of calls: no effect. */
const ANSWERS = ['idempotency', 'operations'];

const { recorder } = AuditedCall.prototype;
AuditedCall.prototype.recorder = function (record, status) {
  calls.enterWith({ changes: [], hasEntry: false });
  return recorder.call(this, record, status);
};

const { commit } = SqliteMetadata.prototype;
SqliteMetadata.prototype.commit = function (statements: readonly Statement[]) {
  const seen = calls.getStore();
  if (seen !== undefined) {
    const tables = statements.flatMap(({ sql }) => TABLE.exec(sql)?.[1] ?? []);
    if (tables.includes('audit_rows')) seen.hasEntry = true;
    else seen.changes.push(...tables.filter((table) => !ANSWERS.includes(table)));
  }
  return commit.call(this, statements);
};

function tell({ action, outcome }: AuditEntry): void {
  const seen = calls.getStore();
  if (seen === undefined || outcome !== 'done' || seen.hasEntry || seen.changes.length === 0) return;
  process.stderr.write(`entry of ${action} apart from ${seen.changes.join(' ')}\n`);
}

const { note, write } = Trail.prototype;
Trail.prototype.note = function (entry, allowance) {
  tell(entry);
  note.call(this, entry, allowance);
};
Trail.prototype.write = function (entry) {
  tell(entry);
  return write.call(this, entry);
};
