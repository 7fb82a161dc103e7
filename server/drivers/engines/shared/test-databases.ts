/** Databases that tenants' programs create beside their own, for tests and as shadows. */

/** Maximum on a server, or beside a database where each has its own server. */
export const MOST_TEST_DATABASES = 50;

/** Whether frameworks use such a name for test databases; nothing else identifies them. */
export function isTestName(name: string): boolean {
  return /^(?:test|.+_test|.+_shadow)/s.test(name);
}
