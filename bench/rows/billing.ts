/**
 * Billing with a million transfers and ten thousand machines: the report, the verification, an hour's rating.
 */
import { join } from 'node:path';
import { runChild } from '../child.ts';
import { median } from '../ratios.ts';
import { formatNumber } from '../table.ts';
import type { Measurement, Row, RunOptions } from '../workshop.ts';

const CHILD = new URL('../children/billing.ts', import.meta.url);
const MOST_REPORT_MS = 50;
const LEAST_ROWS = 200_000;
const MOST_SHARE = 0.02;
const HOUR_SECONDS = 3600;

interface Found {
  readonly times: readonly number[];
  readonly checked: number;
  readonly seconds: number;
  readonly verifyCpu: number;
  readonly settled: number;
  readonly rateCpu: number;
  readonly checkCpu: number;
  readonly problem: string | null;
}

const percent = (share: number) => `${(share * 100).toFixed(2)} %`;

async function billing({ quick, folder }: RunOptions): Promise<Row[]> {
  const transfers = quick ? 100_000 : 1_000_000;
  const machines = quick ? 1000 : 10_000;
  const found = await runChild<Found>(CHILD, {
    directory: join(folder, 'billing'),
    transfers,
    machines,
    accounts: machines,
    ofFirst: transfers / 20,
  });
  if (found.problem !== null) throw new Error(`the ledger is inconsistent: ${found.problem}`);
  const report = median(found.times);
  const speed = found.checked / found.seconds;
  // An hour has one rating of all machines and sixty checks.
  const share = (found.rateCpu + 60 * found.checkCpu) / HOUR_SECONDS;
  const size = formatNumber(transfers);
  return [
    {
      work: `usage report of one account in ${size} transfers`,
      target: `≤ ${MOST_REPORT_MS} ms`,
      reached: `**${report.toFixed(1)} ms**`,
      isMet: report <= MOST_REPORT_MS,
      detail: `20 machines for a month; at worst ${Math.max(...found.times).toFixed(1)} ms, settled each time`,
    },
    {
      work: `verify ${size} transfers, all balances, all use`,
      target: `≥ ${formatNumber(LEAST_ROWS)}/s`,
      reached: `**${formatNumber(speed)}/s**`,
      isMet: speed >= LEAST_ROWS,
      detail: `${found.seconds.toFixed(1)} s, ${found.verifyCpu.toFixed(1)} s of a core`,
    },
    {
      work: `metering ${formatNumber(machines)} machines for an hour`,
      target: `≤ ${percent(MOST_SHARE)} of a core`,
      reached: `**${percent(share)}**`,
      isMet: share <= MOST_SHARE,
      detail:
        `${found.rateCpu.toFixed(1)} s to rate ${formatNumber(found.settled)} accounts, ` +
        `${(found.checkCpu * 1000).toFixed(0)} ms a check`,
    },
  ];
}

export const BILLING: readonly Measurement[] = [{ name: 'billing', run: billing }];
