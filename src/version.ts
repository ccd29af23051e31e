/** Version of errand; recorded in every transcript. */
export const ERRAND_VERSION = '0.1.0';
