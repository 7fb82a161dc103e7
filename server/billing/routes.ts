/** Billing over REST: usage, payments and prices of an account. */

import { listPage, Paging, rowIdCursor } from '../http/list-page.ts';
import { varyOn } from '../http/origins.ts';
import { defineRoute, type Route, type RouteInput } from '../http/route.ts';
import type { Clock } from '../platform/clock.ts';
import { Type } from '../platform/json/json-schema.ts';
import type { PriceList } from './catalog/price-list.ts';
import type { EstimateReport } from './reports/estimate.ts';
import type { ReportItem, Reports } from './reports/report.ts';
import type { LedgerReports } from './reports/report-ledger.ts';
import { readPeriod } from './reports/report-period.ts';
import * as shapes from './schema.ts';
import { ByResourceQuery, UsageByResource } from './spend-schema.ts';

export interface BillingRoutesDeps {
  readonly reports: Pick<Reports, 'usage' | 'byResource'>;
  readonly ledgerReports: Pick<LedgerReports, 'list'>;
  readonly estimate: (accountId: number) => Promise<EstimateReport>;
  readonly priceList: Pick<PriceList, 'of'>;
  readonly clock: Clock;
}

const common = { method: 'GET', tag: 'billing', permission: 'billing:read' } as const;

export function billingRoutes(deps: BillingRoutesDeps): Route[] {
  return [...reportRoutes(deps), ...forecastRoutes(deps)];
}

function reportRoutes({ reports, ledgerReports, clock }: BillingRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      path: '/api/billing/usage',
      name: 'getUsage',
      summary: 'Show your usage, its cost and your balance',
      description:
        'Includes all usage up to now, even if the ledger has no entry for it yet; entries are made ' +
        'hourly. With `Accept: text/csv` the response is a table of the items. A period has at most 400 days.',
      query: shapes.PeriodQuery,
      responses: { 200: shapes.UsageReport },
      errors: ['account_not_found'],
      handler: async ({ principal, query, request, reply }) => {
        const period = readPeriod(query, clock.now());
        const report = await reports.usage(principal.accountId, period);
        varyOn(request.responseHeaders, 'Accept');
        if (!prefersCsv(request.headers.accept)) return report;
        sendCsv({ request, reply }, 'usage.csv', itemsCsv(report.items));
        return undefined;
      },
    }),
    defineRoute({
      ...common,
      path: '/api/billing/usage/resources',
      name: 'getUsageByResource',
      summary: 'Show what each of your resources cost on each day',
      description:
        'The most expensive resources, including deleted ones, and the sum of the rest. With `Accept: text/csv` the response is ' +
        'a table of days and resources. A period has at most 400 days.',
      query: ByResourceQuery,
      responses: { 200: UsageByResource },
      errors: ['account_not_found'],
      handler: async ({ principal, query: { top = 8, ...given }, request, reply }) => {
        const report = await reports.byResource(principal.accountId, readPeriod(given, clock.now()), top);
        varyOn(request.responseHeaders, 'Accept');
        if (!prefersCsv(request.headers.accept)) return report;
        sendCsv({ request, reply }, 'costs.csv', resourcesCsv(report));
        return undefined;
      },
    }),
    defineRoute({
      ...common,
      path: '/api/billing/ledger',
      name: 'listLedger',
      summary: 'List your ledger entries, newest first',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(shapes.Entry) },
      errors: ['invalid_cursor'],
      produces: 'list',
      handler: async ({ principal, query: { limit, cursor }, request }) => {
        const before = rowIdCursor(cursor);
        const asked = { before, limit: limit === undefined ? Number.POSITIVE_INFINITY : limit + 1 };
        const found = ledgerReports.list(principal.accountId, asked);
        let last = 0n;
        let count = 0;
        // The cursor is the number of the last entry shown, which is not a member of the entry.
        async function* shown() {
          for await (const { seq, entry } of found) {
            if (limit === undefined || count < limit) last = seq;
            count++;
            yield entry;
          }
        }
        return await listPage({ request, limit, entries: shown(), cursorOf: () => String(last) });
      },
    }),
  ];
}

function forecastRoutes({ estimate, priceList }: BillingRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      path: '/api/billing/estimate',
      name: 'getEstimate',
      summary: 'Show resources in use, their cost, and how long your credits last',
      responses: { 200: shapes.Estimate },
      errors: ['account_not_found'],
      handler: ({ principal }) => estimate(principal.accountId),
    }),
    defineRoute({
      ...common,
      path: '/api/billing/prices',
      name: 'listPrices',
      summary: 'List your prices, current and scheduled',
      responses: { 200: Type.Array(shapes.ListedPrice) },
      handler: ({ principal }) => priceList.of(principal.accountId),
    }),
  ];
}

function sendCsv(
  { request, reply }: Pick<RouteInput<unknown, unknown, unknown>, 'request' | 'reply'>,
  file: string,
  body: string,
): void {
  reply.hijack();
  reply.raw.writeHead(200, {
    ...request.responseHeaders,
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': `attachment; filename=${file}`,
    'content-length': Buffer.byteLength(body),
  });
  reply.raw.end(body);
}

/** A row per day and resource that cost something on it. */
function resourcesCsv({ dates, resources, others }: UsageByResource): string {
  const rest = { resource_type: 'others', resource_id: '', name: '', days: others.days };
  const rows = dates.flatMap((date, index) =>
    [...resources, rest].flatMap(({ resource_type, resource_id, name, days }) => {
      const cost = days[index] ?? 0;
      return Number(cost) === 0 ? [] : [[date, resource_type, resource_id, name, cost]];
    }),
  );
  return csvText([['date', 'resource_type', 'resource_id', 'name', 'cost'], ...rows]);
}

const COLUMNS = [
  ...(['resource_type', 'resource_id', 'name', 'meter'] as const),
  ...(['quantity', 'unit', 'unit_price', 'cost'] as const),
];

function itemsCsv(items: readonly ReportItem[]): string {
  return csvText([COLUMNS, ...items.map((item) => COLUMNS.map((column) => item[column]))]);
}

type Cell = string | number;

const MUST_QUOTE = /[",\r\n]/;
/** Spreadsheets treat text that begins with these characters as a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** Rows end with CRLF. Text that a spreadsheet would evaluate is prefixed with an apostrophe. */
export function csvText(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(',')}\r\n`).join('');
}

function cellText(cell: Cell): string {
  if (typeof cell === 'number') return plainNumber(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return MUST_QUOTE.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Without an exponent, which JavaScript writes for very small numbers. */
function plainNumber(value: number): string {
  const text = String(value);
  return text.includes('e') ? value.toFixed(9).replace(/0+$/, '').replace(/\.$/, '') : text;
}

/** True when the Accept header prefers CSV to JSON. */
export function prefersCsv(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weights = new Map<string, number>();
  for (const part of accept.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const weight = quality === undefined ? 1 : Number(quality);
    weights.set(type, Number.isFinite(weight) ? weight : 0);
  }
  const weightOf = (type: string, family: string) =>
    weights.get(type) ?? weights.get(family) ?? weights.get('*/*') ?? 0;
  return weightOf('text/csv', 'text/*') > weightOf('application/json', 'application/*');
}
