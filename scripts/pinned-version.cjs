/**
 * Loaded into npm where an older Node runs it. npm leaves out optional packages that its own Node could not run,
 * without a word, and has no option against it; but they are for the pinned Node, which is one of them.
 */
Object.defineProperty(process, 'version', { value: process.env.CLOUDLET_PINNED_NODE });
