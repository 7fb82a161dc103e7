/** Tabs of a machine's page, in this order. */
export const MACHINE_TABS = ['overview', 'console', 'log', 'charts'] as const;
export type MachineTab = (typeof MACHINE_TABS)[number];
