/** What plans and quotas look like from outside. */
import { describedAs, namedObject, type Static, Type } from '../platform/json-schema.ts';
import { QUOTAS } from './quotas.ts';

const Limit = Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
  description: 'null: unlimited',
});

const limits = {
  vms: Type.Optional(Limit),
  vcpus: Type.Optional(Limit),
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
