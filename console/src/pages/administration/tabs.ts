export const TABS = ['status', 'accounts', 'plans', 'prices', 'images', 'upkeep'] as const;
export type Tab = (typeof TABS)[number];
