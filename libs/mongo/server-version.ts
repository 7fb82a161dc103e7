/** The version reported to drivers: this engine supports the queries of that version of MongoDB. */
export const SERVER_VERSION = '7.0.0';
