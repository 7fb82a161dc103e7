/** Tabs of a database's page, in this order. */
export const DATABASE_TABS = ['connect', 'query', 'tables', 'charts', 'log', 'manage'] as const;
export type DatabaseTab = (typeof DATABASE_TABS)[number];
