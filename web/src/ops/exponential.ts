/**
 * The specified exponential's constants (docs/distributions.md, step 6), as float64 bit patterns, and powers of two.
 * journee_deploy/arithmetic/exponential.py is the reference.
 */

const bits = new DataView(new ArrayBuffer(8));

/** The float64 of two 32-bit halves. */
function double(high: number, low: number): number {
  bits.setUint32(0, high);
  bits.setUint32(4, low);
  return bits.getFloat64(0);
}

export const LOWEST = -36;
export const LOG2E = double(0x3ff71547, 0x652b82fe);
/** Ends in 21 zero bits, so that n * LN2_HIGH is exact. */
export const LN2_HIGH = double(0x3fe62e42, 0xfee00000);
export const LN2_LOW = double(0x3dea39ef, 0x35793c76);

/** 1 / i!, rounded to nearest. */
export const C13 = double(0x3de61246, 0x13a86d09);
export const C12 = double(0x3e21eed8, 0xeff8d898);
export const C11 = double(0x3e5ae645, 0x67f544e4);
export const C10 = double(0x3e927e4f, 0xb7789f5c);
export const C9 = double(0x3ec71de3, 0xa556c734);
export const C8 = double(0x3efa01a0, 0x1a01a01a);
export const C7 = double(0x3f2a01a0, 0x1a01a01a);
export const C6 = double(0x3f56c16c, 0x16c16c17);
export const C5 = double(0x3f811111, 0x11111111);
export const C4 = double(0x3fa55555, 0x55555555);
export const C3 = double(0x3fc55555, 0x55555555);

/** The unit of every probability is 2^-50. */
export const SCALE = 2 ** 50;
export const UNIT = 2 ** -50;

/** 2^(50 - n) for n = 0 to 53: a power of two moves through a product, so k = floor(value * SCALED[n]). */
export const SCALED = Float64Array.from({ length: 54 }, (_, n) => 2 ** (50 - n));
