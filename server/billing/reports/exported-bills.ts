/** An account's bill in an export: its usage by item, and each entry of its ledger, newest first. */
import { type Exporting, type ExportSource, jsonFile, linesFile } from '../../calls/account-export.ts';
import type { Clock } from '../../platform/clock.ts';
import { hourOf } from '../metering/settlement.ts';
import type { Reports } from './report.ts';
import type { LedgerReports } from './report-ledger.ts';
import { DAY_MS } from './report-period.ts';

export interface ExportedBillsDeps {
  readonly reports: Pick<Reports, 'usage'>;
  readonly ledgerReports: Pick<LedgerReports, 'list'>;
  readonly clock: Pick<Clock, 'now'>;
}

const HOUR_MS = 3_600_000;
/** The longest period of a report. */
const USAGE_DAYS = 400;

export class ExportedBills implements ExportSource {
  readonly #deps: ExportedBillsDeps;

  constructor(deps: ExportedBillsDeps) {
    this.#deps = deps;
  }

  async *files({ owner: { accountId } }: Exporting) {
    const { reports, ledgerReports, clock } = this.#deps;
    const to = hourOf(clock.now() + HOUR_MS);
    const from = to - USAGE_DAYS * DAY_MS;
    yield jsonFile('billing/usage.json', await reports.usage(accountId, { from, to }));
    const all = { before: 0, limit: Number.POSITIVE_INFINITY };
    yield linesFile('billing/ledger.jsonl', async function* () {
      for await (const { entry } of ledgerReports.list(accountId, all)) yield entry;
    });
  }
}
