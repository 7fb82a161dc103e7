/** API schemas of spend caps, of prices before something is created, and of costs by resource. */
import { namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';
import * as shapes from './schema.ts';

const { Amount, burn, Cap, Credits, MeterName, PeriodQuery, ReportPeriod, resource, TIME, Time } = shapes;

const WarnPercent = Type.Array(Type.Integer({ minimum: 1, maximum: 99 }), {
  maxItems: 10,
  uniqueItems: true,
  description:
    'Percentages of the cap at which a warning is sent, each once a month. Reaching the cap always sends an event',
  examples: [[50, 80]],
});

export const SpendCap = namedObject('SpendCap', {
  account_id: Type.Integer(),
  month: Type.String({ description: 'YYYY-MM, UTC' }),
  cap: Cap('Effective spend cap, in credits: the lower of both caps; null: no cap'),
  own_cap: Cap('The owner’s cap; null: none'),
  administrator_cap: Cap('An administrator’s cap, which the owner cannot raise; null: none'),
  warn_percent: WarnPercent,
  spent: Credits('Cost of the usage of the month up to now, as in the usage report'),
  percent: Type.Union([Type.Number(), Type.Null()], {
    description: 'Spent percentage of the cap, rounded down; null: no cap',
  }),
  month_end: Credits('Expected cost at the end of the month, at the current usage'),
  is_reached: Type.Boolean({
    description:
      'Nothing new can be created, started or stored; machines and databases are stopped. Nothing is deleted',
  }),
  reached_since: textOrNull(`Since when machines and databases are stopped, ${TIME}`),
  expected_at: textOrNull(`When the cap is reached at the current usage, ${TIME}; null: not in this month`),
  resets_at: Time('Start of the next month, when spending counts from zero'),
});
export type SpendCap = Static<typeof SpendCap>;

export const SpendCapChange = namedObject('SpendCapChange', {
  cap: Type.Optional(Cap('Spend cap in credits, at most 6 decimals; null: none')),
  warn_percent: Type.Optional(WarnPercent),
});
export type SpendCapChange = Static<typeof SpendCapChange>;

const ONE_OF = ['vm', 'bucket', 'database'] as const;
export const QuoteQuery = Type.Object({
  resource_type: Type.Enum([...ONE_OF]),
  instance_type: Type.Optional(Type.String({ maxLength: 64, description: 'Instance type, for a `vm`' })),
  engine: Type.Optional(Type.String({ maxLength: 64, description: 'Engine, for a `database`' })),
  size_gb: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      description:
        'Size of the disk of a vm (default: the disk of the instance type), or of a bucket or database (default: 1)',
    }),
  ),
});
export type QuoteQuery = Static<typeof QuoteQuery>;

export const Quote = namedObject('Quote', {
  resource_type: Type.Enum([...ONE_OF]),
  currency: Type.Literal('credits'),
  ...burn,
  items: Type.Array(
    namedObject('QuoteItem', {
      meter: MeterName,
      quantity: Type.Number({
        description: 'Charged level: GB, or 1 for a running machine; 0 for a price per use',
      }),
      unit: Type.String(),
      unit_price: Credits('Price per unit'),
      ...burn,
    }),
    { description: 'The charges; a machine’s `vm.time` only while it runs' },
  ),
  spendable: Credits('Available'),
  days_left: Type.Union([Type.Number(), Type.Null()], {
    description: 'Days that the credits last at the current usage; null: nothing in use costs credits',
  }),
  days_left_with: Type.Union([Type.Number(), Type.Null()], {
    description: 'Days that the credits last with this resource; null: nothing would cost credits',
  }),
  cap: Cap('Spend cap of the month, in credits; null: none'),
  cap_reached_with: textOrNull(
    `When the cap is reached with this resource, ${TIME}; null: not in this month`,
  ),
});
export type Quote = Static<typeof Quote>;

const DayCosts = Type.Array(Amount, { description: 'Cost of each day of `dates`, in credits' });
export const UsageByResource = namedObject('UsageByResource', {
  account_id: Type.Integer(),
  period: ReportPeriod,
  as_of: Time('Usage is included up to this time'),
  total_cost: Credits('Total of the usage report'),
  dates: Type.Array(Type.String({ description: 'YYYY-MM-DD, UTC' })),
  resources: Type.Array(
    namedObject('ResourceCost', {
      resource_type: resource.resource_type,
      resource_id: resource.resource_id,
      name: Type.String({ description: 'Latest name in the period' }),
      is_deleted: Type.Boolean(),
      cost: Credits('Cost in the period'),
      days: DayCosts,
    }),
    { description: 'The most expensive resources, highest cost first' },
  ),
  others: namedObject('OtherCosts', {
    count: Type.Integer({ description: 'All other resources with a cost' }),
    cost: Credits('Cost in the period'),
    days: DayCosts,
  }),
});

export type UsageByResource = Static<typeof UsageByResource>;

export const ByResourceQuery = Type.Object({
  ...PeriodQuery.properties,
  top: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'Resources listed. Default: 8' })),
});
