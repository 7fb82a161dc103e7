import { testSpendCaps } from '../../testing/spend-caps.conformance.ts';

testSpendCaps('SQLite', { open: async () => ({}) });
