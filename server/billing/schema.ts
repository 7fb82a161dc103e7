/** API schemas of billing. */
import { ADMIN_CHANGES } from '../accounts/schema.ts';
import { describedAs, namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';
import { MAX_PRICE } from './catalog/price-list.ts';
import { QUOTAS } from './catalog/quotas.ts';
import { METER_NAMES } from './metering/meters.ts';

export const TIME = 'YYYY-MM-DD HH:MM:SS, UTC';

/** Money is exact: a JSON number never has more digits than a double can represent. */
export const Amount = Type.Union([Type.Number(), Type.String()], {
  $id: 'Credits',
  description:
    'In credits, exact: a number, or a decimal string if a double cannot hold it (beyond 2^53 ' +
    'micro-credits, 9 billion credits)',
});
export const Credits = (description: string) => describedAs(Amount, `${description}, in credits`);
const Quantity = Type.Union([Type.Number(), Type.String()], {
  description: 'In units, rounded to 9 decimals; the cost is computed before rounding',
});
export const Time = (description: string) => Type.String({ description: `${description}, ${TIME}` });
export const MeterName = Type.Enum([...METER_NAMES], {
  description:
    'vm.time: running time; vm.disk: disk size, while it exists; storage: bytes of all versions, with their names ' +
    'and metadata; egress: bytes sent from buckets and from databases, in dumps and to drivers of SQLite and of the built-in MongoDB; ' +
    'database.storage: size of a database',
});

const given = `${TIME}, YYYY-MM-DD, or RFC 3339`;
export const PeriodQuery = Type.Object({
  from: Type.Optional(
    Type.String({ maxLength: 40, description: `${given}; rounded down to the hour. Default: this month` }),
  ),
  to: Type.Optional(
    Type.String({ maxLength: 40, description: `${given}; exclusive, rounded up to the hour` }),
  ),
});

export const ReportPeriod = namedObject('ReportPeriod', {
  from: Time('Start, inclusive'),
  to: Time('End, exclusive'),
});

export const resource = {
  resource_type: Type.String({ examples: ['vm', 'bucket', 'database'] }),
  resource_id: Type.String({ description: 'vm-… or db-…; for a bucket, its name' }),
  name: Type.String(),
  meter: MeterName,
  quantity: Quantity,
  unit: Type.String({ description: '`hour`, `GB-hour` or `GB` (of 2^30 bytes)' }),
  unit_price: Credits('Price per unit'),
};

const UsageItem = namedObject('UsageItem', { ...resource, cost: Credits('Cost in the period') });
const UsageDay = namedObject('UsageDay', {
  date: Type.String({ description: 'YYYY-MM-DD, UTC' }),
  cost: Credits('Total'),
  compute: Credits('Machines'),
  storage: Credits('Object storage'),
  egress: Credits('Egress'),
  databases: Credits('Databases'),
});

export const UsageReport = namedObject('UsageReport', {
  account_id: Type.Integer(),
  plan: Type.String(),
  currency: Type.Literal('credits'),
  period: ReportPeriod,
  as_of: Time('Usage is included up to this time'),
  credits: namedObject(
    'UsageCredits',
    {
      granted: Credits('All grants, less deductions'),
      used: Credits('All payments for usage'),
      balance: Credits('Available and on hold'),
      held: Credits('Part of the balance on hold for running machines'),
      written_off: Type.Optional(Credits('Usage that the account could not pay; it is not owed')),
    },
    {
      description: 'All-time totals: granted − used = balance; used + written_off is the cost of all usage',
    },
  ),
  total_cost: Credits('Cost in the period: the sum of the items, and of the days'),
  items: Type.Array(UsageItem, {
    description: 'One entry per resource, meter and price',
  }),
  daily: Type.Array(UsageDay, { description: 'Every day of the period up to now' }),
});

export const Entry = namedObject('LedgerEntry', {
  id: Type.String(),
  code: Type.String({
    examples: ['signup_grant', 'admin_grant', 'hold', 'release', 'usage', 'usage_correction'],
  }),
  reference: Type.String({ description: 'Purpose' }),
  counterpart: Type.String({
    description: 'The other side of the transfer',
    examples: ['system:revenue-compute'],
  }),
  amount: Credits('Change of the balance; 0 for a hold or release'),
  held: Credits('Change of the credits on hold'),
  balance: Credits('Balance after this entry'),
  created_at: Time('Time of booking'),
  hash: Type.String({
    description: 'SHA-256 over the entry and the hash of the previous entry of the whole ledger',
  }),
});

export const burn = {
  per_hour: Credits('At the current rate'),
  per_day: Credits('For 24 hours'),
  per_month: Credits('For 730 hours'),
};
export const Estimate = namedObject('Estimate', {
  account_id: Type.Integer(),
  currency: Type.Literal('credits'),
  ...burn,
  spendable: Credits('Available'),
  held: Credits('On hold for running machines'),
  days_left: Type.Union([Type.Number(), Type.Null()], {
    description: 'Days until the available credits are used up; null if nothing in use costs anything',
  }),
  items: Type.Array(namedObject('EstimateItem', { ...resource, ...burn }), {
    description: 'Resources in use',
  }),
});

export const Cap = (description: string) =>
  Type.Union([Type.Number({ minimum: 0, maximum: 1e9 }), Type.Null()], { description });
export const ListedPrice = namedObject('ListedPrice', {
  meter: MeterName,
  resource_type: Type.String(),
  instance_type: textOrNull('null if the price is the same for all'),
  engine: textOrNull('null if the price is the same for all'),
  unit: Type.String(),
  price: Credits('Current price per unit'),
  price_per_month: Type.Union([Amount, Type.Null()], {
    description:
      'Price of 730 hours, in credits (of 1 GB if the unit is GB-hour); null if the price is not hourly',
  }),
  effective_from: textOrNull(`Start, ${TIME}; null: always`),
  upcoming: Type.Array(
    namedObject('UpcomingPrice', {
      price: Credits('Price per unit'),
      effective_from: Time('Hour at which it takes effect'),
    }),
  ),
});

export const NewPrice = namedObject('NewPrice', {
  meter: MeterName,
  instance_type: Type.Optional(Type.String({ maxLength: 64, description: 'For vm.time and vm.disk' })),
  engine: Type.Optional(Type.String({ maxLength: 64, description: 'For database.storage' })),
  plan: Type.Optional(
    Type.String({ maxLength: 64, description: 'Only for accounts on this plan; default: all' }),
  ),
  price: Type.Number({
    minimum: 0,
    maximum: MAX_PRICE,
    description: 'Credits per unit, at most 9 decimals',
  }),
  effective_from: Type.Optional(
    Type.String({
      maxLength: 40,
      description: `${given}; a full hour in the future. Default: the next full hour`,
    }),
  ),
});
export type NewPrice = Static<typeof NewPrice>;

export const SetPrice = namedObject('SetPrice', {
  meter: MeterName,
  instance_type: textOrNull('null if the price is the same for all'),
  engine: textOrNull('null if the price is the same for all'),
  plan: textOrNull('null: all plans'),
  unit: Type.String(),
  price: Credits('Price per unit'),
  effective_from: Time('Hour at which it takes effect'),
});

export const MonthQuery = Type.Object({
  month: Type.Optional(Type.String({ maxLength: 7, description: 'YYYY-MM, UTC. Default: this month' })),
});
export const AccountStatement = namedObject('AccountStatement', {
  account_id: Type.Integer(),
  month: Type.String(),
  opening_balance: Credits('Balance at the start of the month'),
  entries: Type.Array(Entry, { description: 'Oldest first' }),
  closing_balance: Credits('Balance at the end of the month, or now'),
});

const amounts = {
  compute: Credits('Machines'),
  storage: Credits('Object storage'),
  egress: Credits('Egress'),
  databases: Credits('Databases'),
  total: Credits('Total'),
  written_off: Credits('Part of the total that accounts could not pay'),
};
export const Revenue = namedObject('Revenue', {
  period: ReportPeriod,
  total: namedObject('RevenueAmounts', amounts),
  daily: Type.Array(
    namedObject('RevenueDay', { date: Type.String({ description: 'YYYY-MM-DD, UTC' }), ...amounts }),
  ),
});

const Hash = Type.String({
  pattern: '^[0-9a-f]{64}$',
  'x-rule': 'must be a SHA-256: 64 lower-case hexadecimal digits',
  description: 'SHA-256 in hex',
});
const Head = namedObject(
  'LedgerHead',
  { seq: Type.Integer({ minimum: 0, description: 'Number of the last transfer' }), hash: Hash },
  {
    description:
      'Store this hash elsewhere: a later verification with it detects transfers removed from the end',
  },
);
export const VerifyBody = namedObject('LedgerVerificationRequest', { head: Type.Optional(Head) });
export const Verification = namedObject('LedgerVerification', {
  running: Type.Boolean(),
  started_at: textOrNull(`${TIME}; null: none since Cloudlet started`),
  seconds: Type.Union([Type.Number(), Type.Null()], {
    description: 'Duration; null while the verification runs',
  }),
  checked: Type.Integer({ description: 'Transfers' }),
  head: Head,
  problem: textOrNull('The inconsistency, naming the transfer or account; null: none found'),
});

const limitOf = (what: string) =>
  Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
    description: `${what}null: unlimited`,
  });
const Limit = limitOf('');

const limits = {
  vms: Type.Optional(Limit),
  vcpus: Type.Optional(Limit),
  memory_mb: Type.Optional(limitOf('Total of running machines; ')),
  disk_gb: Type.Optional(limitOf('Total of the disks and snapshots of machines; ')),
  storage_bytes: Type.Optional(Limit),
  buckets: Type.Optional(Limit),
  databases: Type.Optional(Limit),
};

export const Limits = namedObject('Quotas', limits, { description: 'A missing quota is unlimited' });
export type Limits = Static<typeof Limits>;

const Name = Type.String({
  pattern: '^[a-z][a-z0-9-]{0,31}$',
  'x-rule': 'must be 1 to 32 characters from a-z, 0-9 and "-", and begin with a letter',
  description: 'A lower-case letter, then up to 31 characters from a-z, 0-9 and "-"',
  examples: ['pro'],
});
const MonthlyCredits = Type.Number({
  minimum: 0,
  maximum: 1e9,
  description: 'Granted to each account on the plan once per calendar month (UTC); at most 6 decimals',
});

export const Plan = namedObject('Plan', {
  name: Type.String(),
  monthly_credits: Type.Number(),
  quotas: Limits,
  follows_host: Type.Boolean({
    description:
      'Whether the quotas are derived from the size of this host at each start, until quotas are set',
  }),
  account_count: Type.Integer({ description: 'Open accounts on the plan' }),
  created_at: Type.String({ description: 'UTC', examples: ['2026-01-31 09:30:00'] }),
});
export type Plan = Static<typeof Plan>;

export const NewPlan = namedObject('NewPlan', {
  name: Name,
  monthly_credits: Type.Optional(MonthlyCredits),
  quotas: Type.Optional(Limits),
});
export type NewPlan = Static<typeof NewPlan>;

export const PlanChange = namedObject('PlanChange', {
  monthly_credits: Type.Optional(MonthlyCredits),
  quotas: Type.Optional(describedAs(Limits, 'Replaces all previous limits')),
});
export type PlanChange = Static<typeof PlanChange>;

export const PlanPath = Type.Object({
  name: Type.String({ $id: 'PlanName', description: 'Name of the plan' }),
});

const QuotaUse = namedObject('QuotaUse', {
  limit: Type.Union([Type.Number(), Type.Null()], { description: 'null: unlimited' }),
  used: Type.Number(),
});
const quotaUses = Object.fromEntries(QUOTAS.map((quota) => [quota, QuotaUse])) as Record<
  (typeof QUOTAS)[number],
  typeof QuotaUse
>;

const QuotaUses = namedObject('QuotaUses', quotaUses);

export const AccountQuotas = namedObject('AccountQuotas', {
  plan: Type.String(),
  quotas: QuotaUses,
});
export type AccountQuotas = Static<typeof AccountQuotas>;

export const TermsChange = namedObject('AccountTermsChange', {
  ...ADMIN_CHANGES,
  plan: Type.Optional(Name),
  quotas: Type.Optional(
    describedAs(Limits, 'The account’s own limits, which override its plan’s; replaces all previous ones'),
  ),
  spend_cap: Type.Optional(
    Cap('Spend cap in credits per calendar month (UTC), which the owner may lower; null: none'),
  ),
});
export type TermsChange = Static<typeof TermsChange>;

export const AccountTerms = namedObject('AccountTerms', {
  id: Type.Integer({ description: 'Account id' }),
  plan: Type.String(),
  own_quotas: Limits,
  quotas: QuotaUses,
  spend_cap: Cap('Spend cap set by an administrator, credits per calendar month; null: none'),
});
export type AccountTerms = Static<typeof AccountTerms>;

export const AccountPath = Type.Object({ id: Type.String({ $id: 'AccountId', description: 'Account id' }) });
