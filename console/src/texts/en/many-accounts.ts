/** Changes of many accounts at once. */
import { counted } from './counted.ts';

const accounts = (value: number) => counted(value, 'account');

export const manyAccounts = {
  accounts,
  buttons: {
    plan: 'Plan',
    credits: 'Credits',
    cap: 'Spend cap',
    suspend: 'Suspend',
    resume: 'Reactivate',
    remove: 'Remove',
  },
  titles: {
    plan: (value: number) => `Plan of ${accounts(value)}`,
    credits: (value: number) => `Credits of ${accounts(value)}`,
    cap: (value: number) => `Spend cap of ${accounts(value)}`,
    suspend: (value: number) => `Suspend ${accounts(value)}?`,
    resume: (value: number) => `Reactivate ${accounts(value)}?`,
    remove: (value: number) => `Remove ${accounts(value)}?`,
  },
  actions: {
    plan: (value: number) => `Change ${accounts(value)}`,
    credits: (value: number) => `Give to ${accounts(value)}`,
    cap: (value: number) => `Set for ${accounts(value)}`,
    suspend: (value: number) => `Suspend ${accounts(value)}`,
    resume: (value: number) => `Reactivate ${accounts(value)}`,
    remove: (value: number) => `Remove ${accounts(value)}`,
  },
  capLead:
    'The maximum that each account may spend in a calendar month (UTC). Owners can only lower it. At the cap, machines and databases are ' +
    'stopped, and nothing is deleted. Empty: no cap.',
  uncap: (value: number) => `End the cap of ${accounts(value)}`,
  capped: (credits: string) => `Spend cap: ${credits} credits per month`,
  resumeLead: 'Ends suspensions and cancels scheduled removals. Active accounts do not change.',
  removed: 'removed:',
  lastDay: 'Last day',
  lastDayLead: 'The account is suspended after this day. Empty: never.',
  ownRights: 'This is your own account: you lose these rights at once.',
  everybody: 'All accounts',
  exportFirst: 'Download what you want to keep',
  exportFirstLead: 'The arrow before each name downloads everything of that account.',
  exportOf: (name: string) => `Download everything of ${name}`,
};
