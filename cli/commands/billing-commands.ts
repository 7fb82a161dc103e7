/** `billing`: what the account spends, its spend cap, and prices. */
import type { Command, Invocation } from '../command.ts';
import { UsageError } from '../failures.ts';
import { numberOf } from '../words.ts';

export const BILLING_COMMANDS: readonly Command[] = [
  {
    name: 'billing',
    words: '',
    summary: 'show the credits, the spending of this month, and how long the credits last',
    run: async ({ session, output }) => {
      const { cloud } = session();
      const [estimate, cap] = await Promise.all([cloud.getEstimate(), cloud.getSpendCap()]);
      output.one({ ...cap, ...estimate }, () => [
        `${estimate.spendable} credits to spend${lasts(estimate.days_left)}`,
        `${estimate.per_day} credits per day at the current usage`,
        `${cap.spent} credits spent in ${cap.month}, ${cap.month_end} expected by its end`,
        capLine(cap),
      ]);
    },
  },
  {
    name: 'billing cap',
    words: '[CREDITS]',
    summary: 'show or set the monthly spend cap (calendar months, UTC)',
    details: [
      'CREDITS is a number, or "none". At the cap, machines and databases stop; nothing is deleted.',
      'Machines and databases start again with a higher cap, or in the next month.',
    ].join('\n'),
    options: {
      warn: {
        value: 'PERCENTS',
        summary: 'percentages that send a warning, such as 50,80; "none": only at the cap',
      },
    },
    run: setCap,
  },
  {
    name: 'billing price',
    words: 'KIND [NAME]',
    summary: 'show what a machine, database or bucket would cost, before it is created',
    details: 'KIND is vm (NAME: an instance type), db (NAME: an engine) or bucket.',
    options: { size: { value: 'GB', summary: 'size in GB; default: the disk of the instance type, or 1' } },
    run: showPrice,
  },
  {
    name: 'billing resources',
    words: '',
    summary: 'list the most expensive resources, including deleted ones',
    options: {
      from: { value: 'TIME', summary: 'start; default: the start of this month' },
      to: { value: 'TIME', summary: 'end' },
    },
    run: async ({ session, output, options }) => {
      const [from, to] = [options.text('from'), options.text('to')];
      const period = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
      const { resources } = await session().cloud.getUsageByResource({ ...period, top: 50 });
      output.table(resources, ['TYPE', 'NAME', 'COST', 'ID'], (one) => {
        return [
          one.resource_type,
          one.is_deleted ? `${one.name} (deleted)` : one.name,
          one.cost,
          one.resource_id,
        ];
      });
    },
  },
];

interface Cap {
  readonly cap: number | null;
  readonly administrator_cap: number | null;
  readonly percent: number | null;
  readonly is_reached: boolean;
  readonly expected_at: string | null;
  readonly resets_at: string;
}

function capLine({ cap, administrator_cap, percent, is_reached, expected_at, resets_at }: Cap): string {
  if (cap === null) return 'no spend cap';
  const whose = administrator_cap === cap ? ', set by an administrator' : '';
  const line = `spend cap ${cap} credits per month${whose}: ${percent} %`;
  if (is_reached) return `${line}, reached: everything is stopped until ${resets_at} UTC or a higher cap`;
  return expected_at === null ? line : `${line}, reached at ${expected_at} UTC at the current usage`;
}

function lasts(days: number | null): string {
  return days === null ? '' : `, for ${Math.floor(days)} days`;
}

async function setCap({ session, output, options, words: [wanted] }: Invocation): Promise<void> {
  const { cloud } = session();
  const warn = options.text('warn');
  const change = {
    ...(wanted !== undefined && { cap: wanted === 'none' ? null : numberOf('CREDITS', wanted) }),
    ...(warn !== undefined && { warn_percent: percentsOf(warn) }),
  };
  const isShown = wanted === undefined && warn === undefined;
  const cap = isShown ? await cloud.getSpendCap() : await cloud.setSpendCap(change);
  const { warn_percent: percents } = cap;
  output.one(cap, () => [
    capLine(cap),
    `${cap.spent} credits spent in ${cap.month}`,
    percents.length === 0 ? 'no warning before the cap' : `warned at ${percents.join(', ')} %`,
  ]);
}

function percentsOf(text: string): number[] {
  return text === 'none' ? [] : text.split(',').map((one) => numberOf('--warn', one));
}

const KINDS = { vm: 'vm', db: 'database', bucket: 'bucket' } as const;

async function showPrice({ session, output, options, words: [kind = '', name] }: Invocation): Promise<void> {
  if (!Object.hasOwn(KINDS, kind)) throw new UsageError(`${kind} is not one of vm, db, bucket`);
  const size = options.text('size');
  const price = await session().cloud.getQuote({
    resource_type: KINDS[kind as keyof typeof KINDS],
    ...(kind === 'vm' && name !== undefined && { instance_type: name }),
    ...(kind === 'db' && name !== undefined && { engine: name }),
    ...(size !== undefined && { size_gb: numberOf('--size', size) }),
  });
  output.one(price, () => [
    `${price.per_month} credits per month (${price.per_hour} per hour)`,
    price.days_left_with === null
      ? 'free; nothing else in use costs credits'
      : `your ${price.spendable} credits last ${Math.floor(price.days_left_with)} days with this resource`,
    ...(price.cap_reached_with === null ? [] : [`the spend cap is reached at ${price.cap_reached_with} UTC`]),
  ]);
}
