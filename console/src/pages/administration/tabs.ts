export const TABS = [
  'status',
  'accounts',
  'machines',
  'plans',
  'prices',
  'revenue',
  'images',
  'upkeep',
] as const;
export type Tab = (typeof TABS)[number];
