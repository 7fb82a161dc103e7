/** The version reported to drivers: queries of that version of MongoDB are supported. */
export const SERVER_VERSION = '7.0.0';
