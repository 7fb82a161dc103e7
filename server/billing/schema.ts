/** What billing looks like over REST. */
import { describedAs, namedObject, type Static, Type } from '../platform/json-schema.ts';
import { MAX_PRICE } from './catalog/price-list.ts';
import { QUOTAS } from './catalog/quotas.ts';
import { METER_NAMES } from './metering/meters.ts';

const TIME = 'YYYY-MM-DD HH:MM:SS, UTC';

/** Money is exact: no double is asked for more digits than it has. */
const Amount = Type.Union([Type.Number(), Type.String()], {
  $id: 'Credits',
  description:
    'In credits, exact: a number, or a string of the same decimal when a double does not hold it (beyond 2^53 ' +
    'micro-credits, 9 billion credits)',
});
const Credits = (description: string) => describedAs(Amount, `${description}, in credits`);
const Quantity = Type.Union([Type.Number(), Type.String()], {
  description: 'In units, rounded to 9 decimals; the cost is not made from what is rounded',
});
const Time = (description: string) => Type.String({ description: `${description}, ${TIME}` });
const MeterName = Type.Enum([...METER_NAMES], {
  description:
    'vm.time: while it runs; vm.disk: as long as it exists; storage: all versions; egress: sent, of a ' +
    'bucket or a database, as dumps and to drivers of SQLite and of the built-in MongoDB; ' +
    'database.storage: what a database takes',
});
const Nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

const given = `${TIME}, YYYY-MM-DD, or RFC 3339`;
export const PeriodQuery = Type.Object({
  from: Type.Optional(
    Type.String({ maxLength: 40, description: `${given}; rounded down to the hour. Default: this month` }),
  ),
  to: Type.Optional(
    Type.String({ maxLength: 40, description: `${given}; not included, rounded up to the hour` }),
  ),
});

const ReportPeriod = namedObject('ReportPeriod', { from: Time('Included'), to: Time('Not included') });

const resource = {
  resource_type: Type.String({ examples: ['vm', 'bucket', 'database'] }),
  resource_id: Type.String({ description: 'vm-… or db-…; of a bucket its name' }),
  name: Type.String(),
  meter: MeterName,
  quantity: Quantity,
  unit: Type.String({ description: '`hour`, `GB-hour` or `GB` (of 2^30 bytes)' }),
  unit_price: Credits('Of one unit'),
};

const UsageItem = namedObject('UsageItem', { ...resource, cost: Credits('Of the period') });
const UsageDay = namedObject('UsageDay', {
  date: Type.String({ description: 'YYYY-MM-DD, UTC' }),
  cost: Credits('All of it'),
  compute: Credits('Of machines'),
  storage: Credits('Of stored bytes'),
  egress: Credits('Of sent bytes'),
  databases: Credits('Of what databases take'),
});

export const UsageReport = namedObject('UsageReport', {
  account_id: Type.Integer(),
  plan: Type.String(),
  currency: Type.Literal('credits'),
  period: ReportPeriod,
  as_of: Time('Everything used up to then is charged and shown'),
  credits: namedObject(
    'UsageCredits',
    {
      granted: Credits('Everything ever given, less what was taken away'),
      used: Credits('Everything ever paid for use'),
      balance: Credits('What may be spent, and what is held'),
      held: Credits('Set aside for what runs: a part of the balance'),
      written_off: Type.Optional(Credits('Use that the account could not pay; nobody asks for it')),
    },
    {
      description:
        'Sums over all time: granted − used = balance, and used + written_off is what all use cost',
    },
  ),
  total_cost: Credits('Of the period: the sum of the items, and of the days'),
  items: Type.Array(UsageItem, {
    description: 'One for each resource, meter and price',
  }),
  daily: Type.Array(UsageDay, { description: 'Every day of the period up to now' }),
});

export const Entry = namedObject('LedgerEntry', {
  id: Type.String(),
  code: Type.String({
    examples: ['signup_grant', 'admin_grant', 'hold', 'release', 'usage', 'usage_correction'],
  }),
  reference: Type.String({ description: 'What it was for' }),
  counterpart: Type.String({ description: 'The other side', examples: ['system:revenue-compute'] }),
  amount: Credits('What it changed of the balance; 0 when something is only held or released'),
  held: Credits('What it changed of what is held'),
  balance: Credits('Afterwards'),
  created_at: Time('When it was booked'),
  hash: Type.String({ description: 'SHA-256 of the entry and of the one before it in the whole ledger' }),
});

const burn = {
  per_hour: Credits('As long as nothing changes'),
  per_day: Credits('Of 24 hours'),
  per_month: Credits('Of 730 hours'),
};
export const Estimate = namedObject('Estimate', {
  account_id: Type.Integer(),
  currency: Type.Literal('credits'),
  ...burn,
  spendable: Credits('What may be spent'),
  held: Credits('Set aside for what runs'),
  days_left: Type.Union([Type.Number(), Type.Null()], {
    description: 'Until nothing is left to spend; null while nothing that costs anything is in use',
  }),
  items: Type.Array(namedObject('EstimateItem', { ...resource, ...burn }), {
    description: 'What is in use now',
  }),
});

export const ListedPrice = namedObject('ListedPrice', {
  meter: MeterName,
  resource_type: Type.String(),
  instance_type: Nullable('null where the price does not depend on it'),
  engine: Nullable('null where the price does not depend on it'),
  unit: Type.String(),
  price: Credits('Of one unit, now'),
  price_per_month: Type.Union([Amount, Type.Null()], {
    description: 'In credits, of one hour or GB for 730 hours; null where it is not for time',
  }),
  effective_from: Nullable(`Since when, ${TIME}; null: since ever`),
  upcoming: Type.Array(
    namedObject('UpcomingPrice', {
      price: Credits('Of one unit'),
      effective_from: Time('The hour from which it holds'),
    }),
  ),
});

export const NewPrice = namedObject('NewPrice', {
  meter: MeterName,
  instance_type: Type.Optional(Type.String({ maxLength: 64, description: 'For vm.time and vm.disk' })),
  engine: Type.Optional(Type.String({ maxLength: 64, description: 'For database.storage' })),
  plan: Type.Optional(Type.String({ maxLength: 64, description: 'Only for its accounts; default: all' })),
  price: Type.Number({
    minimum: 0,
    maximum: MAX_PRICE,
    description: 'Credits for one unit, at most 9 decimals',
  }),
  effective_from: Type.Optional(
    Type.String({ maxLength: 40, description: `${given}; a whole hour to come. Default: the next one` }),
  ),
});
export type NewPrice = Static<typeof NewPrice>;

export const SetPrice = namedObject('SetPrice', {
  meter: MeterName,
  instance_type: Nullable('null where the price does not depend on it'),
  engine: Nullable('null where the price does not depend on it'),
  plan: Nullable('null: for all'),
  unit: Type.String(),
  price: Credits('Of one unit'),
  effective_from: Time('The hour from which it holds'),
});

export const MonthQuery = Type.Object({
  month: Type.Optional(Type.String({ maxLength: 7, description: 'YYYY-MM, UTC. Default: this month' })),
});
export const AccountStatement = namedObject('AccountStatement', {
  account_id: Type.Integer(),
  month: Type.String(),
  opening_balance: Credits('At the beginning of the month'),
  entries: Type.Array(Entry, { description: 'Oldest first' }),
  closing_balance: Credits('At its end, or now'),
});

const amounts = {
  compute: Credits('Of machines'),
  storage: Credits('Of stored bytes'),
  egress: Credits('Of sent bytes'),
  databases: Credits('Of what databases take'),
  total: Credits('All of it'),
  written_off: Credits('What no account could pay of it'),
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
  'x-rule': 'must be a SHA-256: 64 hexadecimal digits in lower case',
  description: 'SHA-256 in hex',
});
const Head = namedObject(
  'LedgerHead',
  { seq: Type.Integer({ minimum: 0, description: 'Number of the last transfer' }), hash: Hash },
  { description: 'Keep it somewhere else: with it, transfers cut off the end are found later' },
);
export const VerifyBody = namedObject('LedgerVerificationRequest', { head: Type.Optional(Head) });
export const Verification = namedObject('LedgerVerification', {
  running: Type.Boolean(),
  started_at: Nullable(`${TIME}; null: never since the start`),
  seconds: Type.Union([Type.Number(), Type.Null()], { description: 'It took; null while it runs' }),
  checked: Type.Integer({ description: 'Transfers' }),
  head: Head,
  problem: Nullable('What is wrong, naming the transfer or account; null: nothing was found'),
});

const limitOf = (what: string) =>
  Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
    description: `${what}null: unlimited`,
  });
const Limit = limitOf('');

const limits = {
  vms: Type.Optional(Limit),
  vcpus: Type.Optional(Limit),
  memory_mb: Type.Optional(limitOf('Of machines that run, together; ')),
  storage_bytes: Type.Optional(Limit),
  buckets: Type.Optional(Limit),
  databases: Type.Optional(Limit),
};

export const Limits = namedObject('Quotas', limits, { description: 'What is missing is not limited' });
export type Limits = Static<typeof Limits>;

const Name = Type.String({
  pattern: '^[a-z][a-z0-9-]{0,31}$',
  'x-rule': 'must have 1 to 32 of a-z, 0-9 and "-", and begin with a letter',
  description: 'A lower-case letter, then up to 31 of a-z, 0-9 and "-"',
  examples: ['pro'],
});
const MonthlyCredits = Type.Number({
  minimum: 0,
  maximum: 1e9,
  description: 'Given to each account of the plan once a calendar month (UTC); at most 6 decimals',
});

export const Plan = namedObject('Plan', {
  name: Type.String(),
  monthly_credits: Type.Number(),
  quotas: Limits,
  follows_host: Type.Boolean({
    description: 'Its quotas are made of the size of this host at each start, until quotas are set',
  }),
  account_count: Type.Integer({ description: 'Accounts that have it, closed ones left out' }),
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
  quotas: Type.Optional(describedAs(Limits, 'In place of all limits of before')),
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
  plan: Type.Optional(Name),
  quotas: Type.Optional(
    describedAs(Limits, 'The account’s own limits, which go before its plan’s, in place of all of before'),
  ),
});
export type TermsChange = Static<typeof TermsChange>;

export const AccountTerms = namedObject('AccountTerms', {
  id: Type.Integer({ description: 'Account id' }),
  plan: Type.String(),
  own_quotas: Limits,
  quotas: QuotaUses,
});
export type AccountTerms = Static<typeof AccountTerms>;

export const AccountPath = Type.Object({ id: Type.String({ $id: 'AccountId', description: 'Account id' }) });
