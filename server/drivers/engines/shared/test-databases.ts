/** Databases that programs of tenants make beside their own, for tests and as shadows. */

/** The most on a server, or beside a database where each has its own. */
export const MOST_TEST_DATABASES = 50;

/** Whether frameworks use such a name for test databases; nothing else identifies them. */
export function isTestName(name: string): boolean {
  return /^(?:test|.+_test|.+_shadow)/s.test(name);
}
