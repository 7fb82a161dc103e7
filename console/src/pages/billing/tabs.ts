export const TABS = ['now', 'report', 'ledger', 'prices'] as const;
export type Tab = (typeof TABS)[number];
