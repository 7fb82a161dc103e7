/** The product's version, as package.json has it. */
import packageJson from '../../package.json' with { type: 'json' };

export const VERSION: string = packageJson.version;
