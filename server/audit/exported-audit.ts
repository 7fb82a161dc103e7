/** The audit log of an account in an export, newest first. */
import { type ExportSource, linesFile } from '../calls/account-export.ts';
import type { Reads } from '../metadata/metadata.ts';
import { AuditLog } from './audit-log.ts';
import { AuditStore } from './store.ts';

const ALL = { actor: '', action: '', target: '', outcome: '', from: 0, to: 0 };

/** The entries that an owner sees. */
export function exportedAudit(reads: Reads): ExportSource {
  const log = new AuditLog(new AuditStore(reads));
  return {
    async *files({ owner: { accountId } }) {
      const page = { before: 0, limit: Number.POSITIVE_INFINITY };
      yield linesFile('audit.jsonl', () => log.list({ ...ALL, accountId }, page));
    },
  };
}
