export const TABS = ['status', 'accounts', 'plans', 'prices', 'images', 'webhooks', 'upkeep'] as const;
export type Tab = (typeof TABS)[number];
