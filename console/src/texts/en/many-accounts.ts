/** Changes of many accounts at once. */
import { counted } from './counted.ts';

const accounts = (value: number) => counted(value, 'account');

export const manyAccounts = {
  accounts,
  buttons: { plan: 'Plan', credits: 'Credits', suspend: 'Suspend', remove: 'Remove' },
  titles: {
    plan: (value: number) => `Plan of ${accounts(value)}`,
    credits: (value: number) => `Credits of ${accounts(value)}`,
    suspend: (value: number) => `Suspend ${accounts(value)}?`,
    remove: (value: number) => `Remove ${accounts(value)}?`,
  },
  actions: {
    plan: (value: number) => `Change ${accounts(value)}`,
    credits: (value: number) => `Give to ${accounts(value)}`,
    suspend: (value: number) => `Suspend ${accounts(value)}`,
    remove: (value: number) => `Remove ${accounts(value)}`,
  },
  exportFirst: 'Download what you want to keep',
  exportFirstLead: 'The arrow before each name downloads everything of that account.',
  exportOf: (name: string) => `Download everything of ${name}`,
};
