/** What drivers take us for: the queries that this engine knows are those of that version of MongoDB. */
export const SERVER_VERSION = '7.0.0';
