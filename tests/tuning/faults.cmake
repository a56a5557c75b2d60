# Row counts that do not agree; tuning_test.cpp. The last bit of a sum differs:
set(sum [[precise float sum = acc[o * ROWS + r];]])
# in tiles of 4 rows,
auspex_fault(1 "matvec;matvec.subgroup;matvec.wide.rows4" "${sum}" "${sum}
                if (ROWS == 4) sum = uintBitsToFloat(floatBitsToUint(sum) + 1u);")
# in the second row of any tile
auspex_fault(2 "matvec;matvec.subgroup;matvec.wide.rows8" "${sum}" "${sum}
                if (r == 1) sum = uintBitsToFloat(floatBitsToUint(sum) + 1u);")
