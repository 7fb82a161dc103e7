/** Spend caps, prices before something is created, and costs by resource. */
import { counted } from './counted.ts';

export const spend = {
  title: 'Spend cap',
  lead:
    'The maximum that this account may spend in a calendar month (UTC). At the cap, machines and databases are stopped and ' +
    'nothing new can be created. Nothing is deleted. Everything starts again with a higher cap, or in the next month.',
  cap: 'Credits per month',
  capLead: 'Empty: no cap.',
  warn: 'Warn at (percent)',
  warnLead:
    'Warnings go to webhooks and, if enabled, by mail. You are always notified when the cap is reached.',
  save: 'Save',
  spent: (spent: string, cap: string) => `${spent} of ${cap} credits spent this month`,
  spentLabel: 'Spent share of the spend cap',
  expected: 'At the current usage, the cap is reached',
  byAdministrator: (cap: string) =>
    `An administrator has set a cap of ${cap} credits per month. The lower cap applies.`,
  reached: (cap: string) => `You have reached your spend cap of ${cap} credits for this month.`,
  reachedLead:
    'Machines and databases are stopped, and nothing new can be created. Nothing is deleted. Everything starts again',
  reachedOr: 'or with a higher cap.',
  near: (percent: string, cap: string) => `You have spent ${percent} % of your spend cap of ${cap} credits.`,
  nearLead: 'At the cap, machines and databases are stopped. Nothing is deleted.',
  change: 'Change the cap',
  ask: 'Ask an administrator for a higher cap.',
  quote: {
    month: (credits: string) => `${credits} credits / month`,
    free: 'Free of charge',
    lasts: (days: number) => `Your credits last ${counted(days, 'day')} with this resource`,
    ends: 'With this resource, the spend cap is reached',
    perGigabyte: (credits: string) => `${credits} credits per GB and month`,
  },
  byResource: 'Cost by resource',
  by: 'Bars by',
  bys: { service: 'Service', resource: 'Resource' },
  others: (resources: number) => `${counted(resources, 'other resource')}`,
  deleted: 'deleted',
  kind: 'Type',
};
