/** The sections of a bucket's settings, in order of use; each is the hash of its address. */

export const SECTIONS = ['basics', 'access', 'lifecycle', 'lock', 'cors', 'tags', 'audit'] as const;

export type SettingsSection = (typeof SECTIONS)[number];
